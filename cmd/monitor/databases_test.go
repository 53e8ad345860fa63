package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/anomalies"
)

// What a database's documentation says may happen at one of its levels breaks nothing that we take
// it to promise there, and what it excludes does: beside the table of what breaks what.
func TestDatabasesKeepWhatTheyPromise(t *testing.T) {
	const weak = "lost-update write-skew non-repeatable-reads fractured-read non-monotonic-read long-fork"
	breaks := map[string]map[verdict.Level]verdict.Outcome{}
	for _, c := range anomalies.Load(t, filepath.Join("..", "..", "testdata", "anomalies")) {
		breaks[c.Name] = c.Levels
	}
	for _, tc := range []struct{ levels, may, mustNot string }{
		{"postgres:read-committed cockroachdb:read-committed yugabytedb:read-committed oracle:read-committed mysql:read-committed mariadb:read-committed sqlserver:read-committed tidb:read-committed",
			weak, "aborted-read intermediate-read"},
		{"postgres:repeatable-read cockroachdb:snapshot yugabytedb:snapshot sqlserver:snapshot oracle:serializable mongodb:snapshot spanner:repeatable-read",
			"write-skew", "lost-update long-fork fractured-read"},
		{"postgres:serializable cockroachdb:serializable yugabytedb:serializable mysql:serializable mariadb:serializable sqlserver:serializable sqlite:serializable redis:multi-exec",
			"", "write-skew lost-update"},
		{"etcd:strict-serializable foundationdb:strict-serializable spanner:serializable", "", "write-skew lost-update"},
		{"foundationdb:snapshot-reads", "lost-update write-skew", "long-fork fractured-read"},
		{"etcd:serializable mongodb:majority", weak + " session-guarantee-violation causality-violation", "aborted-read"},
	} {
		for name := range strings.FieldsSeq(tc.levels) {
			l, err := verdict.FindLevel(name)
			if err != nil {
				t.Error(err)
				continue
			}
			for what := range strings.FieldsSeq(tc.may) {
				if o, ok := breaks[what][l]; !ok || o == verdict.Violated {
					t.Errorf("%s may show %s, which breaks %v", name, what, l)
				}
			}
			for what := range strings.FieldsSeq(tc.mustNot) {
				if o, ok := breaks[what][l]; !ok || o != verdict.Violated {
					t.Errorf("%s excludes %s, which does not break %v", name, what, l)
				}
			}
		}
	}
}
