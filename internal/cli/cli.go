// Package cli implements the command tidegate: its subcommands, their output and
// exit codes.
//
// Start with [Main].
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Exit codes.
const (
	exitOK    = 0
	exitFound = 1 // errors were found
	exitUsage = 2 // the command was not understood
)

// Env is the environment of a command.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Color          bool // Stdout supports colors
	Asks           bool // Stdin is interactive, so questions can be asked
	Getenv         func(string) string
}

// System returns the Env of this process.
func System() Env {
	return Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Color: isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "", Getenv: os.Getenv,
		Asks: isTerminal(os.Stdin) && isTerminal(os.Stdout),
	}
}

// isTerminal reports whether f is a character device other than the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && (nullErr != nil || !os.SameFile(info, null))
}

// command is a subcommand.
type command struct {
	name    string
	summary string
	help    string // usage and examples; the flags are appended
	takes   takes
	setup   func(*flag.FlagSet) func(context.Context, Env, []string) int
}

// takes describes the arguments of a command, for completion.
type takes struct {
	words   []string            // the first argument is one of these
	endings []string            // of the files among the arguments; folders are offered, too
	values  map[string][]string // values of flags, if they can be listed
}

// commands are in the order of --help. init fills them in, because completion refers to all of them.
var commands []command

func init() {
	commands = []command{initCommand, serveCommand, configCommand, lintCommand, testCommand, explainCommand, planCommand, ciCommand, schemaCommand, simCommand, askCommand, keysCommand, whyCommand, banCommand, unbanCommand, overrideCommand, measuresCommand, topCommand, deferredCommand, auditCommand, apiKeysCommand, healthCommand, fleetCommand, regionSyncCommand, rulesCommand, completionCommand, versionCommand}
}

// Main runs one command and returns its exit code.
func Main(env Env, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	return run(ctx, env, args)
}

func run(ctx context.Context, env Env, args []string) int {
	if len(args) == 0 {
		overview(env.Stderr)
		return exitUsage
	}
	switch name := args[0]; name {
	case "help", "--help", "-h", "-help":
		if len(args) > 1 {
			return run(ctx, env, []string{args[1], "--help"})
		}
		overview(env.Stdout)
		return exitOK
	case "--version":
		return run(ctx, env, append([]string{"version"}, args[1:]...))
	default:
		for _, c := range commands {
			if c.name == name {
				return c.run(ctx, env, args[1:])
			}
		}
		fmt.Fprintf(env.Stderr, "tidegate: there is no command %q", name)
		if near := diag.Nearest(name, commandNames()); near != "" {
			fmt.Fprintf(env.Stderr, "; did you mean %q?", near)
		}
		fmt.Fprintln(env.Stderr, "\nRun tidegate --help for those there are.")
		return exitUsage
	}
}

func (c *command) run(ctx context.Context, env Env, args []string) int {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	do := c.setup(flags)
	rest, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.usage(env.Stdout, flags)
		return exitOK
	case err != nil:
		return misused(env, c.name, "%s", flagMistake(flags, err))
	}
	return do(ctx, env, rest)
}

// parse accepts flags anywhere among the arguments, up to "--".
func parse(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		left := flags.Args()
		if len(left) == 0 {
			return rest, nil
		}
		if used := len(args) - len(left); used > 0 && args[used-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// flagMistake returns what is wrong with the flags, and suggests a flag for one that does not exist.
func flagMistake(flags *flag.FlagSet, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return valueMistake(flags, err.Error())
	}
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	// A setting is often called by its last word.
	last := func(f string) string { return f[strings.LastIndexByte(f, '.')+1:] }
	near := diag.Nearest(name, names)
	if i := slices.IndexFunc(names, func(f string) bool { return near == "" && last(f) == last(name) }); i >= 0 {
		near = names[i]
	}
	text := fmt.Sprintf("there is no flag --%s", name)
	switch {
	case near != "":
		text += fmt.Sprintf("; did you mean --%s?", near)
	case len(names) > 0 && len(names) < 20:
		text += "; there are --" + strings.Join(names, ", --")
	}
	return text
}

var badValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^ :]+): (.*)$`)

// valueMistake returns what is wrong with the value of a flag, and what to write instead.
func valueMistake(flags *flag.FlagSet, text string) string {
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Sprintf("--%s needs a value", name)
	}
	m := badValue.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	value, name, why := m[1], m[2], m[3]
	if f := flags.Lookup(name); f != nil && why == "parse error" {
		why = "it has to be a number"
		if get, ok := f.Value.(flag.Getter); ok {
			switch get.Get().(type) {
			case bool:
				why = "it is true or false"
			case time.Duration:
				why = "write a duration, as in 30s, 15m or 2h"
			}
		}
	}
	return fmt.Sprintf("--%s cannot be %s: %s", name, value, why)
}

func commandNames() []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

// misused prints what is wrong with how a command was called, and returns exitUsage.
func misused(env Env, command, format string, args ...any) int {
	fmt.Fprintf(env.Stderr, "tidegate %s: %s\nRun tidegate %s --help.\n", command, fmt.Sprintf(format, args...), command)
	return exitUsage
}
