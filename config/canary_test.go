package config

import (
	"strings"
	"testing"
)

// An address is printed without any password that it has.
func TestAddressesHaveNoPasswords(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://canary:hunter2@db-1:5432/shop":                                  "postgres://canary:xxxxx@db-1:5432/shop",
		"postgres://canary@db-1/shop?password=hunter2&sslmode=disable":              "postgres://canary@db-1/shop?password=xxxxx&sslmode=disable",
		"postgres://canary@db-1/shop?sslmode=verify-full&sslPassword=hunter2&x=%20": "postgres://canary@db-1/shop?sslPassword=xxxxx&sslmode=verify-full&x=+",
		"sqlite:///folder/canary.db?journal=wal":                                    "sqlite:///folder/canary.db?journal=wal",
	} {
		if got := Address(address).String(); got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%q is printed as %q, want %q", address, got, want)
		}
	}
}
