package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/ruletest"
)

var testCommand = command{
	name:    "test",
	summary: "Run unit tests of rules, in virtual time.",
	help: `
Usage: tidegate test [FLAGS] FILE...

A test file names a rule file and has cases: requests at instants of a virtual clock,
and the results they must have:

  rules: rules.yaml
  cases:
    - name: two posts a second
      steps:
        - { at: 0s,   request: POST /posts, as: { user: 42 }, times: 3, want: [ok, ok, refused], retry_after: 1s }
        - { at: 1.1s, request: POST /posts, as: { user: 42 }, want: ok, remaining: 1 }

A day of virtual traffic runs at once. docs/rules.md explains every field.

Examples:
  tidegate test rules_test.yaml
  tidegate test --watch rules_test.yaml    # again whenever a file changes
  tidegate test --json *_test.yaml`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o testOptions
		flags.BoolVar(&o.json, "json", false, "print JSON")
		flags.BoolVar(&o.strict, "strict", false, "exit 1 also if a rule is exercised by no test")
		flags.BoolVar(&o.verbose, "v", false, "list passing cases, too")
		flags.BoolVar(&o.watch, "watch", false, "run again whenever a test or rule file changes, until interrupted")
		return o.run
	},
}

type testOptions struct{ json, strict, verbose, watch bool }

func (o *testOptions) run(ctx context.Context, env Env, args []string) int {
	switch {
	case len(args) == 0:
		return misused(env, "test", "name a test file")
	case o.watch && o.json:
		return misused(env, "test", "--watch and --json do not go together")
	case o.watch:
		return o.runWatching(ctx, env, args)
	}
	return o.runAll(ctx, env, args)
}

// tested is what came of one test file: a report, or why there is none.
type tested struct {
	report   *ruletest.Report
	problems diag.List
}

func (o *testOptions) runAll(ctx context.Context, env Env, args []string) int {
	var all []tested
	for _, name := range args {
		t := runTest(ctx, name)
		all = append(all, t)
		if !o.json {
			o.print(env, name, t)
		}
	}
	if o.json {
		if code := printJSON(env, all); code != exitOK {
			return code
		}
	}
	for _, t := range all {
		if t.report == nil || t.report.Failed() > 0 || o.strict && len(t.report.Untouched) > 0 {
			return exitFound
		}
	}
	return exitOK
}

func runTest(ctx context.Context, name string) tested {
	file, problems := ruletest.Read(name)
	if file == nil {
		return tested{problems: problems}
	}
	report, err := file.Run(ctx, rules.Config{})
	if err != nil {
		return tested{problems: problemsOf(err)}
	}
	return tested{report: report}
}

// MarshalJSON gives the report, or the problems that kept it from being made.
func (t tested) MarshalJSON() ([]byte, error) {
	if t.report != nil {
		return json.Marshal(t.report)
	}
	return json.Marshal(struct {
		Problems diag.List `json:"problems"`
	}{t.problems})
}

func (o *testOptions) print(env Env, name string, t tested) {
	if t.report == nil {
		t.problems.Write(env.Stdout, env.Color)
		fmt.Fprintf(env.Stdout, "%s %s\n", env.paint(red, "FAIL"), name)
		return
	}
	for _, c := range t.report.Cases {
		switch {
		case len(c.Failures) > 0:
			fmt.Fprintf(env.Stdout, "%s %s\n", env.paint(red, "FAIL"), c.Name)
			for _, f := range c.Failures {
				printFailure(env, f)
			}
		case o.verbose:
			fmt.Fprintf(env.Stdout, "%s   %s\n", env.paint(green, "ok"), c.Name)
		}
	}
	word := env.paint(green, "ok")
	if t.report.Failed() > 0 {
		word = env.paint(red, "FAIL")
	}
	fmt.Fprintf(env.Stdout, "%s %s: %s, %d failed, %s", word, name,
		plural(len(t.report.Cases), "case"), t.report.Failed(), plural(t.report.Requests, "request"))
	if len(t.report.Untouched) > 0 {
		fmt.Fprintf(env.Stdout, "; touched by no test: %s", strings.Join(t.report.Untouched, ", "))
	}
	fmt.Fprintln(env.Stdout)
}

func printFailure(env Env, f ruletest.Failure) {
	fmt.Fprintf(env.Stdout, "  %s:%d:%d: %s\n", f.File, f.Line, f.Col, env.paint(bold, f.Message))
	fmt.Fprintf(env.Stdout, "    %s\n", strings.TrimSpace(f.Source))
	for _, why := range f.Why {
		fmt.Fprintf(env.Stdout, "    %s\n", env.paint(dim, why))
	}
}
