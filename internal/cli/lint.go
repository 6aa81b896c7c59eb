package cli

import (
	"context"
	"flag"
	"fmt"

	"tidegate.dev/tidegate/internal/diag"
	"tidegate.dev/tidegate/rules/lint"
)

var lintCommand = command{
	name:    "lint",
	summary: "Look for mistakes in rule files.",
	help: `
Usage: tidegate lint [FLAGS] FILE|FOLDER...

Reports everything that keeps the rules from loading, and what would load and
still not do what was meant: limits that can be escaped, that never bite, that
shadow each other. Each check has a page in docs/lint.

Examples:
  tidegate lint rules.yaml
  tidegate lint --strict --json rules/     # in CI: warnings fail, too
  tidegate lint --checks                   # what is looked for`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o lintOptions
		flags.BoolVar(&o.json, "json", false, "print JSON")
		flags.BoolVar(&o.strict, "strict", false, "exit 1 for warnings, too")
		flags.BoolVar(&o.list, "checks", false, "list the checks and exit")
		return o.run
	},
}

type lintOptions struct{ json, strict, list bool }

func (o *lintOptions) run(_ context.Context, env Env, args []string) int {
	if o.list {
		for _, c := range lint.Checks {
			fmt.Fprintf(env.Stdout, "%-26s %s\n", c.Name, c.Summary)
		}
		return exitOK
	}
	if len(args) == 0 {
		return misused(env, "lint", "name a rule file or a folder of them")
	}
	found := diag.List{} // printed as [] in JSON
	for _, name := range args {
		found.Add(lint.File(name, lint.Options{})...)
	}
	found = found.Bounded()
	if o.json {
		if code := printJSON(env, found); code != exitOK {
			return code
		}
	} else {
		found.Write(env.Stdout, env.Color)
		o.sum(env, found, len(args))
	}
	if found.HasErrors() || o.strict && len(found) > 0 {
		return exitFound
	}
	return exitOK
}

func (o *lintOptions) sum(env Env, found diag.List, files int) {
	errors, warnings := found.Count()
	text := fmt.Sprintf("%s: %s, %s", plural(files, "file"), plural(errors, "error"), plural(warnings, "warning"))
	if len(found) > 0 {
		fmt.Fprintln(env.Stdout)
	}
	fmt.Fprintln(env.Stdout, text)
}
