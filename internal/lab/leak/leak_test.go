package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// What ends late is waited for, and what does not end is found.
func TestFind(t *testing.T) {
	before := []goleak.Option{goleak.IgnoreCurrent()}
	stay, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() { <-stay }()
	if err := find(time.Millisecond, before); err == nil {
		t.Error("a goroutine that stays is not found")
	}
	time.AfterFunc(time.Second, func() { close(stay) }) // longer than goleak looks
	if err := find(patience, before); err != nil {
		t.Errorf("a goroutine that ends late is not waited for: %v", err)
	}
	go func() { <-end }()
	if err := find(time.Millisecond, before); err == nil {
		t.Error("another that stays is not found")
	}
}
