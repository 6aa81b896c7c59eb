package cli

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

var versionCommand = command{
	name:    "version",
	summary: "Print the version.",
	help:    "Usage: tidegate version [--json]",
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		asJSON := flags.Bool("json", false, "print JSON")
		return func(_ context.Context, env Env, args []string) int {
			if len(args) > 0 {
				return misused(env, "version", "it takes no arguments, but got %q", args[0])
			}
			v := version()
			if *asJSON {
				return printJSON(env, v)
			}
			fmt.Fprintln(env.Stdout, v)
			return exitOK
		}
	},
}

// release is the version that this tree becomes. A change of it is a line in CHANGELOG.md.
const release = "v0.1.0"

type buildVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the repository; "+" behind it means that files were changed
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func version() buildVersion {
	v := buildVersion{Version: release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	changed := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				changed = "+"
			}
		}
	}
	if v.Revision != "" {
		v.Revision += changed
	}
	return v
}

// String returns the version for people to read.
func (v buildVersion) String() string {
	text := "tidegate " + v.Version
	if v.Revision != "" {
		text += " (" + v.Revision + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", text, v.Go, v.OS, v.Arch)
}
