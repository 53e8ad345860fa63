//go:build !unix

package store

import (
	"io/fs"
	"math"
)

// available does not know here.
func available(string) (uint64, bool) { return 0, false }

func allocated(info fs.FileInfo) int64 { return info.Size() }

// opened does not know here.
func opened() (open, most uint64) { return 0, math.MaxUint64 }
