package realkafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What was acknowledged before SIGKILL is there after the restart.
func TestKillAndRestart(t *testing.T) {
	b := Start(t)
	b.CreateTopic(t, "t", 2, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.DefaultProduceTopic("t"), kgo.ConsumeTopics("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), kgo.StringRecord("kept")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	b.Kill()
	b.Restart(t)
	for {
		fetches := cl.PollFetches(t.Context())
		if records := fetches.Records(); len(records) > 0 {
			if string(records[0].Value) != "kept" {
				t.Errorf("got %q", records[0].Value)
			}
			return
		}
	}
}
