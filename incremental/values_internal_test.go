package incremental

import (
	"testing"

	"github.com/isowatch/isowatch/incremental/version"
)

// Consecutive values of one key, and equal values of consecutive keys, fall on as
// many slots as random ones would, give or take: of n hashes into n slots the
// share of slots hit is 1 - 1/e, some 63%.
func TestHashSpreads(t *testing.T) {
	const n = 1 << 14
	for name, at := range map[string]func(i int) (version.Key, int64){
		"values of the first key": func(i int) (version.Key, int64) { return 0, int64(i) },
		"values of a key":         func(i int) (version.Key, int64) { return 77, int64(i) },
		"every 2^16-th value":     func(i int) (version.Key, int64) { return 3, int64(i) << 16 },
		"every 2^32-th value":     func(i int) (version.Key, int64) { return 3, int64(i) << 32 },
		"negative values":         func(i int) (version.Key, int64) { return 3, -int64(i) },
		"keys":                    func(i int) (version.Key, int64) { return version.Key(i), 5 },
		"a counter over keys":     func(i int) (version.Key, int64) { return version.Key(i % 100), int64(i) },
	} {
		hit := map[uint32]bool{}
		for i := range n {
			k, v := at(i)
			hit[hash(k, v)&(n-1)] = true
		}
		if share := float64(len(hit)) / n; share < 0.6 {
			t.Errorf("%s: %d hashes hit %.0f%% of as many slots", name, n, 100*share)
		}
	}
}
