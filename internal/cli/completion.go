package cli

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
)

var completionCommand = command{
	name:    "completion",
	summary: "Print the script that completes commands, flags and files in a shell.",
	help: `
Usage: tidegate completion bash|zsh|fish

The script completes the commands and flags of this version, the values of flags where
they can be listed, and the files that a command reads.

Examples:
  source <(tidegate completion bash)                # in ~/.bashrc
  tidegate completion bash > /etc/bash_completion.d/tidegate
  tidegate completion zsh > "${fpath[1]}/_tidegate"
  tidegate completion fish > ~/.config/fish/completions/tidegate.fish`,
	takes: takes{words: []string{"bash", "zsh", "fish"}},
	setup: func(*flag.FlagSet) func(context.Context, Env, []string) int {
		return func(_ context.Context, env Env, args []string) int {
			if len(args) != 1 {
				return misused(env, "completion", "name the shell: bash, zsh or fish")
			}
			var script string
			switch args[0] {
			case "bash":
				script = bashCompletion(completions())
			case "zsh":
				script = zshCompletion(completions())
			case "fish":
				script = fishCompletion(completions())
			default:
				return misused(env, "completion", "there is no script for %q, only for bash, zsh and fish", args[0])
			}
			if _, err := fmt.Fprint(env.Stdout, script); err != nil {
				fmt.Fprintln(env.Stderr, "tidegate completion:", err)
				return exitFound
			}
			return exitOK
		}
	},
}

// completion is what can be completed after a command.
type completion struct {
	name, summary string
	takes
	flags []completedFlag
}

// completedFlag is a flag as shells need it.
type completedFlag struct {
	name, help string
	value      string   // name of the value; "" if there is none
	words      []string // all values, if they can be listed
	file       bool     // the value names a file or folder
}

// completions returns the completions of all commands.
func completions() []completion {
	var all []completion
	for _, c := range commands {
		made := completion{name: c.name, summary: c.summary, takes: c.takes}
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		c.setup(flags)
		flags.VisitAll(func(f *flag.Flag) { made.flags = append(made.flags, completeFlag(f, c.takes.values[f.Name])) })
		made.flags = append(made.flags, completedFlag{name: "help", help: "print how to use the command"})
		all = append(all, made)
	}
	return append(all, completion{name: "help", summary: "Print how to use a command.", takes: takes{words: commandNames()}})
}

func completeFlag(f *flag.Flag, words []string) completedFlag {
	value, help := flag.UnquoteUsage(f)
	made := completedFlag{name: f.Name, help: help, words: words}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return made
	}
	if value == "" {
		value = "value"
	}
	made.value = value
	made.file = value == "FILE" || value == "FOLDER"
	if w, ok := f.Value.(interface{ Words() []string }); ok && words == nil {
		made.words = w.Words()
	}
	return made
}

// with returns the names of the flags for which fits is true.
func (c *completion) with(fits func(completedFlag) bool) []string {
	var names []string
	for _, f := range c.flags {
		if fits(f) {
			names = append(names, f.name)
		}
	}
	return names
}

// alternatives returns a case pattern of a shell: lint:was|lint:door.
func alternatives(command string, flags []string) string {
	all := slices.Clone(flags)
	for i := range all {
		all[i] = command + ":" + all[i]
	}
	return strings.Join(all, "|")
}
