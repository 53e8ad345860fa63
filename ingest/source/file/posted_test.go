package file_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/ingest/source/file"
)

// Who posts is told that it was taken, so that others can, while it waits until it is stored; who gives up is told too.
func TestPosted(t *testing.T) {
	p := file.NewPosted("posts")
	p.Begin(100)
	taken, answers := make(chan bool, 3), make(chan error, 2)
	for range 2 {
		go func() {
			answers <- p.Post(t.Context(), []byte("{}\n\n{\"a\":1}"), func() { taken <- true })
		}()
	}
	var ends []int64
	for range 2 {
		b, err := p.Read(t.Context())
		for err == nil && b.CaughtUp { // nobody has come yet
			b, err = p.Read(t.Context())
		}
		if err != nil || len(b.Messages) != 2 || string(b.Messages[1].Value) != `{"a":1}` || b.Messages[1].Pos.Line != 0 {
			t.Fatalf("%+v, %v", b, err)
		}
		<-taken
		ends = append(ends, b.Next)
	}
	if ends[0] != 111 || ends[1] != 122 {
		t.Errorf("they end at %v", ends)
	}
	p.Stored(ends[0])
	if err := <-answers; err != nil {
		t.Error(err)
	}
	if len(answers) > 0 {
		t.Error("the second is answered, and not stored")
	}
	p.Stored(ends[1])
	if err := <-answers; err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Post(gone, []byte("{}"), func() { taken <- true }); !errors.Is(err, context.Canceled) || len(taken) != 1 {
		t.Errorf("who gave up: %v, %d", err, len(taken))
	}
}

// What is read tells until when all that was posted has been read: until it was.
func TestPostsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := file.NewPosted("posts"), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			go func() { _ = p.Post(ctx, []byte("{}"), func() {}) }()
			time.Sleep(time.Minute)
		}
		for i := range 2 {
			if b, err := p.Read(ctx); err != nil || b.Asked.Sub(began) != time.Duration(i)*time.Minute {
				t.Errorf("%d: %v, %v", i, b.Asked.Sub(began), err)
			}
		}
		if b, err := p.Read(ctx); err != nil || !b.CaughtUp || !b.Asked.Equal(time.Now()) {
			t.Errorf("none waits: %+v, %v", b, err)
		}
	})
}
