package reject

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// Labels become metric labels and stored reasons: they must be there, unique
// and in kebab case.
func TestReasonsAreClosed(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for r := range numReasons {
		l := r.String()
		if !kebab.MatchString(l) || seen[l] {
			t.Errorf("reason %d has the label %q", r, l)
		}
		seen[l] = true
		if r.Meaning() == "" {
			t.Errorf("%s has no meaning", l)
		}
	}
	if got := Reason(200).String(); got != "reason(200)" {
		t.Errorf("an unknown reason prints as %q", got)
	}
}

func TestMessages(t *testing.T) {
	file := record.Position{Source: "orders.jsonl", Line: 17, Offset: 900}
	topic := record.Position{Source: "txns", Kafka: true, Partition: 3, Offset: 42}
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{New(BadJSON, "a comma is missing"), "a comma is missing (bad-json)"},
		{New(BadJSON, "a comma is missing").At(file), "orders.jsonl:17: a comma is missing (bad-json)"},
		{In("[1]", EmptyName, "a key is empty").UnderIndex(2).Under("ops").At(topic), "txns/3@42: field ops[2][1]: a key is empty (empty-name)"},
		{In("initial", UnknownSetting, "no").Under("history"), "field history.initial: no (unknown-setting)"},
		{(&Error{Reason: EmptyInput}).Under(""), "there is not one transaction (empty-input)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestChains(t *testing.T) {
	inner := In("seq", Negative, "seq is -1")
	err := fmt.Errorf("reading: %w", inner)
	if From(err) != inner || From(errors.New("other")) != nil || From(nil) != nil {
		t.Error("From does not find the Error in a chain")
	}
	if !errors.Is(err, &Error{Reason: Negative}) || errors.Is(err, &Error{Reason: TooDeep}) {
		t.Error("errors.Is does not go by the reason")
	}
	if errors.Is(err, &Error{Reason: Negative, Field: "start"}) {
		t.Error("errors.Is overlooks the field of a full Error")
	}
}
