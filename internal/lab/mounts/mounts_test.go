package mounts

import "testing"

func TestAllowed(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nCapInh:\tffffffffffffffff\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n": true,
		"CapEff:\t0000000000200000\n":                          true,
		"CapEff:\t00000000a80425fb\n":                          false, // root in a container, as most are made
		"CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff": false,
		"CapEff:\tmany\n":                                      false,
		"":                                                     false,
	} {
		if got := allowed(status); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
}
