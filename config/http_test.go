package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHTTP(t *testing.T) {
	const token = "0123456789abcdef"
	for _, tc := range []struct {
		name, text string
		errors     []string
		warnings   []string
	}{
		{name: "loopback", text: "{listen: '127.0.0.1:80', admin: '[::1]:81'}"},
		{name: "all of loopback", text: "{listen: '127.8.9.1:80', admin: 'LocalHost:81'}"},
		{name: "no listener", text: "{listen: ''}"},
		{name: "every address", text: "{listen: ':80'}", errors: []string{
			"c.yaml:2:16: http.listen: :80 can be reached from other machines, and nothing asks who is there: set http.token_file or http.tls.client_ca, or listen on 127.0.0.1"}},
		{name: "another machine's name", text: "{listen: 'localhost.example.org:80'}", errors: []string{
			"c.yaml:2:16: http.listen: localhost.example.org:80 can be reached from other machines, and nothing asks who is there: set http.token_file or http.tls.client_ca, or listen on 127.0.0.1"}},
		{name: "profiles for everybody", text: "{admin: '0.0.0.0:6060', tls: {cert: c, key: k}}", errors: []string{
			"c.yaml:2:15: http.admin: 0.0.0.0:6060 can be reached from other machines, and nothing asks who is there: set http.token_file or http.tls.client_ca, or listen on 127.0.0.1"}},
		{name: "a token in the open", text: "{listen: ':80', token_file: token}", warnings: []string{
			"http.listen: :80 without http.tls sends the token readable by anyone on the way, unless something in front of it speaks TLS"}},
		{name: "a token and TLS", text: "{listen: ':80', token_file: token, tls: {cert: c, key: k}}"},
		{name: "certificates of clients", text: "{listen: ':80', tls: {cert: c, key: k, client_ca: ca}}"},
		{name: "half a certificate", text: "{tls: {cert: c, client_ca: ca}}", errors: []string{
			"c.yaml:2:13: http.tls: wants both cert and key: the certificate that the monitor shows, and its private key"}},
		{name: "a short token", text: "{token_file: short}", errors: []string{
			"c.yaml:2:20: http.token_file: short holds 15 characters, and a token has at least 16: make one with openssl rand -hex 32"}},
		{name: "no token", text: "{listen: ':80', token_file: none, tls: {cert: c, key: k}}", errors: []string{
			"c.yaml:2:35: http.token_file: can't read none: no such file or directory"}},
		{name: "the same port", text: "{listen: '127.0.0.1:80', admin: '127.0.0.1:80'}", errors: []string{
			"c.yaml:2:39: http.admin: is the same address as http.listen: give it a port of its own"}},
		{name: "no address of a page", text: "{base_url: 'isowatch.example.org'}", errors: []string{
			"c.yaml:2:18: http.base_url: wants an address such as https://isowatch.example.org"}},
		{name: "a secret in the page's address", text: "{base_url: 'https://u:p@isowatch.example.org'}", errors: []string{
			"c.yaml:2:18: http.base_url: wants an address such as https://isowatch.example.org"}},
		{name: "below a path", text: "{base_url: 'https://example.org/isowatch/'}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := write(t, "c.yaml", minimal+"http: "+tc.text+"\n")
			for name, text := range map[string]string{"token": token + "\n", "short": token[1:]} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			loaded, err := Load(Sources{File: file})
			var got, warnings []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			} else {
				warnings = loaded.Warnings
			}
			if diff := cmp.Diff(tc.errors, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if err == nil && strings.Contains(string(loaded.YAML()), token) {
				t.Errorf("the token is printed:\n%s", loaded.YAML())
			}
		})
	}
}
