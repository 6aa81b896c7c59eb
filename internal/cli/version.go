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
			fmt.Fprintf(env.Stdout, "tidegate %s %s %s/%s\n", v.Version, v.Go, v.OS, v.Arch)
			return exitOK
		}
	},
}

type buildVersion struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func version() buildVersion {
	v := buildVersion{"(devel)", runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	return v
}
