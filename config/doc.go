// Package config is what `monitor run` is told: a YAML file, then environment
// variables, then flags, each overriding the one before, read once at the start.
//
//	c.yaml ─┐
//	ISOWATCH_… ─┼─▶ Load ─▶ *Config, or Errors: all of them, each with its place
//	--set k=v ─┘
//
// Three ideas make the package small:
//
//   - The struct is the schema. Names, types, defaults and descriptions stand
//     in Config's fields; parsing, environment names, the printed effective
//     configuration and the table in docs/configuration.md all derive from it.
//   - Everything that is wrong is reported together. Load walks the YAML tree
//     against the struct itself rather than decoding it, so that an unknown key,
//     a string where a number belongs and a bad duration come out of one run,
//     each as file:line:column and the key's path.
//   - A key has one name. `source.kafka.topic` in the file is
//     ISOWATCH_SOURCE_KAFKA_TOPIC in the environment and
//     `--set source.kafka.topic=…` on the command line.
//
// # Environment names
//
// The name of a key is ISOWATCH_ followed by its path in upper case with every
// dot replaced by an underscore. Underscores inside a key's own name stay as they
// are (window.max_skew is ISOWATCH_WINDOW_MAX_SKEW); a test proves that no two
// keys share a name. Values are written as in YAML; a list of plain values may
// also be separated by commas (ISOWATCH_LEVELS=si,ser).
//
// A variable that begins with ISOWATCH_ and names no key is a warning, not an
// error: Kubernetes sets ISOWATCH_SERVICE_HOST and the like beside any service
// of that name.
//
// # Secrets
//
// Passwords and signing secrets are never in the file: keys that end in _file
// name files that hold them. Load reads these at the start, so that a missing
// one is a configuration error and not a surprise at the first alert.
package config
