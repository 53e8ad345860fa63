package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// secret is in every key and value of secretUpdate.
const secret = "Ada Lovelace"

// secretUpdate is a lost update of what nobody is to see.
func secretUpdate(n int) []record.Transaction {
	txns := lostUpdate(n, 1000)
	for i := range txns {
		for j := range txns[i].Ops {
			op := &txns[i].Ops[j]
			op.Key, op.Value = "<b>"+secret+"</b>"+op.Key, record.String(secret+op.Value.String())
		}
	}
	return txns
}

// What leaves the monitor has hashes or pseudonyms in the place of keys and values: the
// alert in the store, what receivers get, the log. The same anomaly keeps its id, and its
// evidence proves it.
func TestValuesAreHidden(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, values := range []string{config.ValuesFull, config.ValuesHash, config.ValuesNone} {
		t.Run(values, func(t *testing.T) {
			brokers := cluster(t)
			send(t, producer(t, brokers), secretUpdate(1)...)
			h := newHook(t)
			c := testConfig(brokers)
			c.Store.Path = t.TempDir()
			c.Alerts.Webhooks, c.Alerts.Values = []config.Webhook{h.webhook()}, values
			st := newMemStore(webhookName(h.webhook()))
			r := start(t, c, st, false)
			a := h.next(t)
			r.stop(t)
			ids[a.ID] = true
			header, txns := parseEvidence(t, a.Evidence)
			if got := judge.NewProver(nil, 1<<40).Judge(verdict.SI, header, txns); got != verdict.Violated {
				t.Errorf("the evidence is %s:\n%s", got, a.Evidence)
			}
			shows := values == config.ValuesFull
			for what, text := range map[string]string{"the receiver": string(a.JSON()), "the log": r.log.String()} {
				if strings.Contains(text, secret) != shows || !strings.Contains(text, a.ID) {
					t.Errorf("%s shows it: %v\n%s", what, !shows, text)
				}
			}
			if _, err := os.Stat(filepath.Join(c.Store.Path, saltFile)); (err == nil) != (values == config.ValuesHash) {
				t.Errorf("the salt: %v", err)
			}
		})
	}
	if len(ids) != 1 {
		t.Errorf("one anomaly has the ids %v", ids)
	}
}

// Of a record that can't be used only the reason and the place in the format are said
// where data is hidden: names of fields that no record has, and what is in objects, is
// the clients'.
func TestPlacesOfHiddenRecords(t *testing.T) {
	hidden, full := &setting{veil: veil.New(veil.None, nil)}, &setting{}
	for field, want := range map[string]string{
		"": "", "status": "status", "ops": "ops", "ops[0][0]": "ops[0][0]", "ops[12][2][3]": "ops[12][2][3]", "ops[0][1].where": "ops[0][1].where",
		"ops[0][2].ssn": "ops[0][2]", "ops[0][2][1].a.b": "ops[0][2][1]", "transaction.ops[1]": "transaction.ops[1]", "begin.session": "begin.session",
		"alice@example.org": "", "idaho": "", "id.alice": "id", "statusAda": "", "history.initial": "history", "opsy[0]": "", "17": "", "wherever": "",
	} {
		e := reject.In(field, reject.UnknownField, "no field is called %q", secret)
		if got := hidden.sayable(e); got.Field != want || strings.Contains(got.Error(), secret) || !strings.Contains(got.Error(), "unknown-field") {
			t.Errorf("%q: %q, %s", field, got.Field, got)
		}
		if full.sayable(e) != e {
			t.Errorf("%q is not shown in full", field)
		}
	}
}

// With one salt, of the folder or of a file, hashes stay the same from run to run.
func TestSaltStays(t *testing.T) {
	dir := t.TempDir()
	key := func(set func(c *config.Config)) string {
		t.Helper()
		c := config.Default()
		c.Store.Path, c.Alerts.Values = dir, config.ValuesHash
		set(c)
		v, err := newVeil(c)
		if err != nil {
			t.Fatal(err)
		}
		return v.Alert(record.InitialAny, nil).Key("acct:1")
	}
	own := key(func(*config.Config) {})
	if again := key(func(*config.Config) {}); again != own {
		t.Errorf("%s, and then %s", own, again)
	}
	salted := key(func(c *config.Config) { c.Alerts.Salt = "0123456789abcdef" })
	elsewhere := key(func(c *config.Config) { c.Alerts.Salt, c.Store.Path = "0123456789abcdef", t.TempDir() })
	if salted == own || salted != elsewhere {
		t.Errorf("%s, %s and %s", own, salted, elsewhere)
	}
	if err := os.WriteFile(filepath.Join(dir, saltFile), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Store.Path, c.Alerts.Values = dir, config.ValuesHash
	if _, err := newVeil(c); err == nil || !strings.Contains(err.Error(), saltFile) {
		t.Errorf("a salt that is too short: %v", err)
	}
}
