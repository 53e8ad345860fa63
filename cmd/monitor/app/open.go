package app

import (
	"errors"
	"io"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/window/store"
)

func openStore(c *config.Config) (store.Store, error) { return nil, errors.New("x") }
func openFile(path string, follow bool, offset int64, onRetry func(error)) (source.Source, error) {
	return nil, errors.New("x")
}
func openStdin(r io.Reader) (source.Source, error) { return nil, errors.New("x") }
