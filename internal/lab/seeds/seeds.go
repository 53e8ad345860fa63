// Package seeds says what random tests begin from: the same each time, so that who runs them first
// sees what everybody sees, and other input with -seed N.
//
// Tests whose package imports it take their own seeds from First on; properties of rapid follow by
// themselves, with fewer checks where a test is to be brief. These neither write nor read a record of a failure, which
// the seed repeats: what an earlier run left decides nothing.
package seeds

import (
	"flag"
	"fmt"
	"strconv"

	_ "pgregory.net/rapid" // has the flags that are set here

	"github.com/isowatch/isowatch/internal/lab/race"
)

// First is the first seed, from 1 on.
var First = new(uint64)

func init() {
	flag.Var((*seed)(First), "seed", "the first seed of random input, from 1 on")
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": strconv.Itoa(race.Few(25, 100)),
		"seed": "1"} {
		if err := flag.Set(name, value); err != nil {
			panic(err) // not reached: both are there
		}
	}
}

type seed uint64

func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (s *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 { // 0 is any seed to rapid
		return fmt.Errorf("%q is no seed: a number from 1 on is", text)
	}
	*s = seed(n)
	return flag.Set("rapid.seed", text)
}
