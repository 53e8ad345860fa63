package store

import "context"

// Pager is a Store that can be read page by page. Badger is one.
type Pager interface {
	// AlertsBefore calls f for alerts, the one stored last first, until f returns false.
	// Alerts are numbered from 0 in the order in which they were first stored; before,
	// if it is not 0, begins with the one below that number. So pages stay as they are
	// while new alerts come. It costs as much as what f is called for.
	AlertsBefore(ctx context.Context, before uint64, f func(number uint64, a Alert) bool) error
}
