package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/history"
)

// flagValues are the words that flags take, by name, wherever a flag is called so. Those of --output differ
// by command: output.flags offers them.
var flagValues = map[string]func() []string{
	"level":    levelWords,
	"format":   func() []string { return append([]string{history.Auto}, history.Formats()...) },
	"from":     func() []string { return append([]string{history.Auto}, history.Formats()...) },
	"to":       history.WrittenFormats,
	"anomaly":  generate.Anomalies,
	"name":     name.Names,
	"workload": allWorkloads,
	"sessions": func() []string { return []string{"keep", "ignore"} },
	"initial":  func() []string { return []string{"any", "absent", "zero"} },
	"coverage": func() []string { return []string{"complete", "partial"} },
	"clock":    func() []string { return []string{"prune", "enforce", "ignore", "database"} },
	"drop":     func() []string { return []string{"aborted", "times"} },
	"encoding": func() []string { return []string{"json", "protobuf"} },
	"state":    func() []string { return states },
	"severity": func() []string { return severities },
}

// levelWords are the levels, and those of databases by their own names.
func levelWords() []string {
	out := verdict.Names(verdict.Levels())
	for _, d := range verdict.Databases() {
		for _, p := range d.Promises {
			if p.Single {
				out = append(out, d.Names[0]+":"+p.Names[0])
			}
		}
	}
	return out
}

// complete has the shell offer the words that flags of a command, and of those below it, take.
func complete(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		words, ok := flagValues[f.Name]
		if !ok || f.Value.Type() != "string" && f.Value.Type() != "stringSlice" {
			return
		}
		all := words()
		if f.Name == "level" && cmd.Name() == "check" {
			all = append(all, "all")
		}
		offer(cmd, f.Name, f.Value.Type() == "stringSlice", all)
	})
	if cmd.LocalFlags().Lookup("set") != nil {
		register(cmd, "set", settings)
	}
	for _, c := range cmd.Commands() {
		complete(c)
	}
}

// settings offers keys of the configuration, and once there is one the words that it takes. Items of lists of parts
// are not set by themselves.
func settings(typed string) ([]string, cobra.ShellCompDirective) {
	var out []string
	key, _, valued := strings.Cut(typed, "=")
	for _, k := range config.Keys() {
		switch {
		case k.Env == "":
		case valued && k.Path == key:
			before := typed[:max(strings.LastIndex(typed, ","), len(key))+1]
			if !k.List {
				before = key + "="
			}
			for _, w := range k.Words {
				if strings.HasPrefix(before+w, typed) {
					out = append(out, before+w)
				}
			}
		case !valued && strings.HasPrefix(k.Path, typed):
			out = append(out, k.Path+"=")
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// offer has the shell offer words for a flag; several: it takes more than one, with commas between.
func offer(cmd *cobra.Command, flag string, several bool, words []string) {
	register(cmd, flag, func(typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if several {
			before = typed[:strings.LastIndex(typed, ",")+1]
		}
		var out []string
		for _, w := range words {
			if strings.HasPrefix(before+w, typed) {
				out = append(out, before+w)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

func register(cmd *cobra.Command, flag string, offer func(typed string) ([]string, cobra.ShellCompDirective)) {
	err := cmd.RegisterFlagCompletionFunc(flag,
		func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offer(typed)
		})
	if err != nil {
		panic("can't happen, because there is such a flag, and it is offered once: " + err.Error())
	}
}
