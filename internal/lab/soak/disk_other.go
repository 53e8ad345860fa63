//go:build !linux

package soak

import "errors"

var errMount = errors.New("disks are mounted on Linux alone")

// NewFinite says that there is none.
func NewFinite(string, int64) (Finite, error) { return nil, errMount }

// NewSlow says that there is none.
func NewSlow(string) (Slow, error) { return nil, errMount }
