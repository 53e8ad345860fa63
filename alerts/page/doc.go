// Package page is what people see of a running monitor in a browser, and the JSON API
// behind it: whether each database keeps its promise, the alerts with their pictures and
// evidence, silences. Everything it serves is in the binary and nothing is fetched from
// elsewhere; what it shows it asks of Data, which the monitor implements.
package page
