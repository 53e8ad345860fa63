package app

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// A notice leads to the alert that it is, whether that stands for its group or is one that came later.
func TestLinksAreOfTheAlert(t *testing.T) {
	c := config.Default()
	c.Source.Stdin = &config.Stdin{}
	c.HTTP.Listen, c.HTTP.BaseURL = "127.0.0.1:0", "https://isowatch.example/"
	st := newMemStore()
	x := startTelling(t, c, st, &stamped{})
	defer x.end()
	var err error
	x.server = &server{}
	if x.server.public, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.server.public.Close() }()
	ids := []string{fmt.Sprintf("%032x", 1), fmt.Sprintf("%032x", 2)}
	var found []store.Alert
	for _, id := range ids {
		a := alerts.Alert{Version: alerts.Version, ID: id, DB: "shop", Level: "si", Name: "lost-update", Severity: "critical", Keys: []string{"x"}, Count: 1}
		found = append(found, store.Alert{ID: id, Body: a.JSON(), News: 1})
	}
	if err := x.keeper.save(t.Context(), "shop", nil, found, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, told := range [][]string{nil, ids, ids[:1], ids[1:]} { // nothing new: told again
		n := life.News{State: alerts.Ongoing, Of: life.Group{ID: "g", Representative: ids[0]}, Notification: life.Notification{Kind: life.KindOngoing, Group: "g", Groups: 1, IDs: told}}
		body, err := x.teller.body(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := life.Parse(body)
		if err != nil || !strings.HasSuffix(got.Links["alert"], "/"+got.ID) || len(told) == 1 && got.ID != told[0] {
			t.Errorf("%v: alert %s, links %v, %v", told, got.ID, got.Links, err)
		}
	}
}
