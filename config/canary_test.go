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

// An address says the same to all that read it, as drivers divide it at its first @ and others at its last: no part of a
// password is taken for a host.
func TestAddressIsReadOneWay(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://canary:hun@ter2@db-1:5432/shop":   "postgres://canary:hun%40ter2@db-1:5432/shop",
		"postgres://db-1:5432,db-2:5433/x?a=1&b=%20":  "postgres://db-1:5432,db-2:5433/x?a=1&b=%20",
		"postgres:///x?host=/tmp&user=a@b":            "postgres:///x?host=/tmp&user=a@b",
		"sqlite:///home/a@b/canary.db?journal=delete": "sqlite:///home/a@b/canary.db?journal=delete",
		"postgres://canary:12#4@db-1:5432/shop":       "",
		"postgres://canary:12?4@db-1:5432/shop":       "",
		"mysql://canary:12/4@db-1:5432/":              "",
		"postgres://canary:1@2/4@db-1:5432/shop":      "",
		"postgres://canary:1@2?4@db-1:5432/shop":      "",
		"postgres://canary:1@2#4@db-1:5432/shop":      "",
		"postgres://canary@db-1/a%40b?user=c%40d":     "postgres://canary@db-1/a%40b?user=c%40d",
	} {
		got, err := parseAddress(address)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s is %s, %v; want %s", address, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "%40 for @") {
			t.Error(err)
		}
	}
}
