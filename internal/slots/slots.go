// Package slots holds what tables that number things by their hashes have in common: the
// form of a slot, and how a table grows. Finding and adding are the tables' own, as what
// they compare and what they hold differs, and as that is hot.
//
//	bit 63 … 32   31 … 0
//	hash          number + 1; a free slot is 0
//
// A table has a power of two of slots. An entry stands in the slot hash & (slots − 1) or,
// where that and those behind it are taken, in the first free one behind them, in a ring:
// whoever looks for it from there finds it before a free slot. The hash in the slot spares
// a look at nearly all that is not it.
package slots

// Doubled is the table with twice as many slots, and at least so many; least is a power of
// two. Linear in the slots.
func Doubled(old []uint64, least int) []uint64 {
	out := make([]uint64, max(least, 2*len(old)))
	mask := uint32(len(out) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := uint32(s>>32) & mask
		for out[i] != 0 {
			i = (i + 1) & mask
		}
		out[i] = s
	}
	return out
}
