//go:build !unix

package main

import (
	"errors"
	"os"
)

func fifo(string) (*os.File, error) { return nil, errors.ErrUnsupported }
