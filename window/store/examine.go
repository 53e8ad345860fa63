package store

// examine looks at the files of a database before Badger opens them.
func examine(string) error { return nil }
