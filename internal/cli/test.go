package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/ruletest"
)

var testCommand = command{
	name:    "test",
	summary: "Run unit tests of rules, in virtual time.",
	help: `
Usage: tidegate test [FLAGS] FILE|FOLDER...

In a folder, it runs all files named *_test.yaml. A test file names a rule file and has
cases: requests at instants of a virtual clock, and the results they must have:

  rules: rules.yaml
  cases:
    - name: two posts a second
      steps:
        - { at: 0s,   request: POST /posts, as: { user: 42 }, times: 3, want: [ok, ok, refused], retry_after: 1s }
        - { at: 1.1s, request: POST /posts, as: { user: 42 }, want: ok, remaining: 1 }

A step 'reload: new.yaml' puts other rules in force, as a running server does: what was
used still counts.
A day of virtual traffic runs at once. docs/rules.md explains every field.

Examples:
  tidegate test rules_test.yaml
  tidegate test --strict rules/            # in CI: all tests of a folder, for all its rules
  tidegate test --watch rules_test.yaml    # again whenever a file changes
  tidegate test --answers rules_test.yaml  # and what clients are told, header by header
  tidegate test --json *_test.yaml`,
	takes: takes{endings: []string{"_test.yaml", "_test.yml"}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o testOptions
		flags.BoolVar(&o.json, "json", false, "print JSON")
		flags.BoolVar(&o.strict, "strict", false, "exit 1 also if a rule is exercised by no test")
		flags.BoolVar(&o.verbose, "v", false, "list passing cases, too")
		flags.BoolVar(&o.answers, "answers", false, "print what clients are told in steps that have an answer")
		flags.BoolVar(&o.watch, "watch", false, "run again whenever a test or rule file changes, until interrupted")
		return o.run
	},
}

type testOptions struct{ json, strict, verbose, answers, watch bool }

func (o *testOptions) run(ctx context.Context, env Env, args []string) int {
	switch {
	case len(args) == 0:
		return misused(env, "test", "name a test file, or a folder of them")
	case o.watch && o.json:
		return misused(env, "test", "--watch and --json do not go together")
	case o.watch:
		return o.runWatching(ctx, env, args)
	}
	return o.runAll(ctx, env, args)
}

// tested is what came of one test file: a report, or why there is none.
type tested struct {
	name     string
	report   *ruletest.Report
	problems diag.List
}

func (o *testOptions) runAll(ctx context.Context, env Env, args []string) int {
	all := []tested{} // printed as [] in JSON
	for _, arg := range args {
		names, err := testFiles(arg)
		if err != nil {
			all = append(all, tested{name: arg, problems: diag.List{{Pos: diag.Pos{File: arg}, Message: err.Error(), Hint: "name a test file, or a folder that has one"}}})
		}
		for _, name := range names {
			all = append(all, runTest(ctx, name))
		}
	}
	touchedByAny(all)
	if o.json {
		if code := printJSON(env, all); code != exitOK {
			return code
		}
	} else {
		for _, t := range all {
			o.print(env, t)
		}
	}
	for _, t := range all {
		if t.report == nil || t.report.Failed() > 0 || o.strict && len(t.report.Untouched) > 0 {
			return exitFound
		}
	}
	return exitOK
}

// testFiles returns the test files that an argument stands for: itself, or those of
// the folder.
func testFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // reading it tells what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("cannot list the folder: %s", diag.Reason(err))
	}
	var all []string
	for _, e := range entries {
		if rulefile.IsTest(e.Name()) && !e.IsDir() && e.Name()[0] != '.' {
			all = append(all, filepath.Join(name, e.Name()))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the folder has no *_test.yaml file")
	}
	return all, nil
}

// touchedByAny leaves a rule among the untouched ones of a report only if no other
// test with one of the same rule files touches it.
func touchedByAny(all []tested) {
	type rule struct{ file, name string }
	touched := make(map[rule]bool)
	for _, t := range all {
		if t.report == nil {
			continue
		}
		for _, file := range t.report.RuleFiles() {
			for _, name := range t.report.Touched {
				touched[rule{file, name}] = true
			}
		}
	}
	for _, t := range all {
		if t.report == nil {
			continue
		}
		for _, file := range t.report.RuleFiles() {
			t.report.Untouched = slices.DeleteFunc(t.report.Untouched, func(name string) bool { return touched[rule{file, name}] })
		}
	}
}

func runTest(ctx context.Context, name string) tested {
	file, problems := ruletest.Read(name)
	if file == nil {
		return tested{name: name, problems: problems}
	}
	report, err := file.Run(ctx, rules.Config{})
	if err != nil {
		return tested{name: name, problems: problemsOf(err)}
	}
	return tested{name: name, report: report}
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

func (o *testOptions) print(env Env, t tested) {
	if t.report == nil {
		t.problems.Write(env.Stdout, env.Color)
		fmt.Fprintf(env.Stdout, "%s %s\n", env.paint(red, "FAIL"), t.name)
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
	if o.answers && len(t.report.Answers) > 0 {
		for i := range t.report.Answers {
			printAnswer(env, &t.report.Answers[i])
		}
		fmt.Fprintln(env.Stdout)
	}
	word := env.paint(green, "ok")
	if t.report.Failed() > 0 {
		word = env.paint(red, "FAIL")
	}
	fmt.Fprintf(env.Stdout, "%s %s: %s, %d failed, %s", word, t.name,
		plural(len(t.report.Cases), "case"), t.report.Failed(), plural(t.report.Requests, "request"))
	if len(t.report.Untouched) > 0 {
		fmt.Fprintf(env.Stdout, "; touched by no test: %s", strings.Join(t.report.Untouched, ", "))
	}
	fmt.Fprintln(env.Stdout)
}

func printAnswer(env Env, a *ruletest.Answer) {
	decided := a.Outcome
	if a.Rule != "" {
		decided += " by " + a.Rule
	}
	fmt.Fprintf(env.Stdout, "\n%s, %s:\n", a.Request, decided)
	for line := range strings.Lines(a.String()) {
		fmt.Fprintln(env.Stdout, strings.TrimRight("    "+line, " \n"))
	}
}

func printFailure(env Env, f ruletest.Failure) {
	fmt.Fprintf(env.Stdout, "  %s:%d:%d: %s\n", f.File, f.Line, f.Col, env.paint(bold, f.Message))
	fmt.Fprintf(env.Stdout, "    %s\n", strings.TrimSpace(f.Source))
	for _, why := range f.Why {
		fmt.Fprintf(env.Stdout, "    %s\n", env.paint(dim, why))
	}
}
