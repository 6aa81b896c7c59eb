package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
)

var lintCommand = command{
	name:    "lint",
	summary: "Find mistakes in rule files.",
	help: `
Usage: tidegate lint [FLAGS] FILE|FOLDER...
       tidegate lint [FLAGS] --was OLD FILE|FOLDER

Reports everything that prevents the rules from loading, and rules that load but do
not do what was meant: limits that can be escaped, that never take effect, that
shadow each other. Each check has a page in docs/lint. With --was it also says which
counters do not simply go on when these rules replace the old ones.

Examples:
  tidegate lint rules.yaml
  tidegate lint --strict --json rules/     # in CI: fail on warnings, too
  tidegate lint --was old.yaml rules.yaml  # which counters start where
  tidegate lint --door forward-auth rules.yaml  # what that door cannot know
  tidegate lint --checks                   # list all checks`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o lintOptions
		flags.BoolVar(&o.json, "json", false, "print JSON")
		flags.BoolVar(&o.strict, "strict", false, "exit 1 for warnings, too")
		flags.StringVar(&o.was, "was", "", "`FILE` or folder of the rules that these replace")
		flags.Func("door", "also say what this `DOOR` cannot know or do: forward-auth, check or resp; may be repeated", o.addDoor)
		flags.BoolVar(&o.list, "checks", false, "list the checks and exit")
		return o.run
	},
}

type lintOptions struct {
	json, strict, list bool
	was                string
	doors              []rules.Door
}

func (o *lintOptions) addDoor(name string) error {
	if !slices.Contains(rules.Doors(), rules.Door(name)) {
		return errors.New("there are forward-auth, check and resp")
	}
	o.doors = append(o.doors, rules.Door(name))
	return nil
}

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
		found.Add(lint.File(name, lint.Options{Doors: o.doors})...)
	}
	found = found.Bounded()
	var changes []rules.Change
	if o.was != "" && !found.HasErrors() {
		if len(args) > 1 {
			return misused(env, "lint", "--was is about one rule file or folder, and there are %d", len(args))
		}
		var err error
		if changes, err = compare(o.was, args[0]); err != nil {
			problemsOf(err).Write(env.Stderr, false)
			return exitFound
		}
	}
	if code := o.print(env, found, changes, len(args)); code != exitOK {
		return code
	}
	if found.HasErrors() || o.strict && len(found) > 0 {
		return exitFound
	}
	return exitOK
}

func (o *lintOptions) print(env Env, found diag.List, changes []rules.Change, files int) int {
	switch {
	case o.json && o.was != "":
		return printJSON(env, struct {
			Problems diag.List      `json:"problems"`
			Changes  []rules.Change `json:"changes"`
		}{found, changes})
	case o.json:
		return printJSON(env, found)
	}
	found.Write(env.Stdout, env.Color)
	o.sum(env, found, files)
	for _, c := range changes {
		fmt.Fprintln(env.Stdout, c)
	}
	if o.was != "" && len(changes) == 0 {
		fmt.Fprintln(env.Stdout, "all counters go on")
	}
	return exitOK
}

// compare tells what becomes of counters when the rules of one file take the place of
// another's.
func compare(old, now string) ([]rules.Change, error) {
	was, err := rules.Load(old, rules.Config{})
	if err != nil {
		return nil, err
	}
	set, err := rules.Load(now, rules.Config{})
	if err != nil {
		return nil, err
	}
	return append([]rules.Change{}, rules.Compare(was, set)...), nil
}

func (o *lintOptions) sum(env Env, found diag.List, files int) {
	errors, warnings := found.Count()
	text := fmt.Sprintf("%s: %s, %s", plural(files, "file"), plural(errors, "error"), plural(warnings, "warning"))
	if len(found) > 0 {
		fmt.Fprintln(env.Stdout)
	}
	fmt.Fprintln(env.Stdout, text)
}
