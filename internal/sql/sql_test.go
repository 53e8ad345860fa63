package sql

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzPlan reads any text. Its statements are the same whatever its literals are.
func FuzzPlan(f *testing.F) {
	for _, text := range []string{"select n from a where id = 1", "insert into a (id, n) values (1, -2), ($1, default) on conflict (id) do update set n = excluded.n returning *",
		"update only a.b as x set n = n - 1, s = 'it''s' where x.id = $2 and n = '4'::int", "/* a /* b */ */ delete from a where (id = 1) -- c", "begin; select $$a$$; commit and chain",
		"create temporary table t (a int default 1)", "truncate a, b cascade", "e'\\'' u&\"a\" x'1f'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := Lex(nil, text)
		if err != nil {
			return
		}
		plans := Plans(tokens)
		for i := range tokens {
			if k := tokens[i].Kind; k == TokenNumber || k == TokenString {
				tokens[i].Text = "0"
			}
		}
		if diff := cmp.Diff(plans, Plans(tokens)); diff != "" {
			t.Errorf("%q with other literals: %s", text, diff)
		}
	})
}
