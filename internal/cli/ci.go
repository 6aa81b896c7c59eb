package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulediff"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
	"tidegate.dev/tidegate/rules/source"
)

var ciCommand = command{
	name:    "ci",
	summary: "Check a change of rules in a pull request: lint, test and plan, as Markdown.",
	help: `
Usage: tidegate ci [FLAGS] --base REF FILE|FOLDER

Runs lint and all tests of the folder, or of the file (beside it, *_test.yaml), compares
the rules with those of the git revision REF, and prints all of that as Markdown for a
comment on the pull request. With --server, it also says how many live keys of a running
server would newly be refused. If that joins several layers, --layer says which of them
these rules are; what they need of the others, the server knows.

Exits 1 if lint finds an error, a test fails, or more than --max-refused live keys would
be refused; with --strict also for warnings, and for rules that no test touches.

It needs git, and REF in the checkout: a shallow one has only the last commit, so fetch
the other (git fetch --depth=1 origin main). Rules that REF does not have are all new.

deploy/ci has this as steps of GitHub Actions and GitLab.

Examples:
  tidegate ci --base origin/main rules/
  tidegate ci --base origin/main --server https://admin.example.com rules/ > comment.md
  tidegate ci --base HEAD~1 --strict --max-refused 0 rules.yaml`,
	takes: takes{endings: []string{".yaml", ".yml"}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := ciOptions{maxRefused: -1}
		flags.StringVar(&o.base, "base", "", "git revision `REF` that the rules are compared with")
		flags.StringVar(&o.remote.server, "server", "", "`URL` of the admin listener of a server whose live keys are looked at")
		layerFlag(flags, &o.layer)
		o.remote.credentialFlags(flags)
		flags.BoolVar(&o.strict, "strict", false, "exit 1 for warnings, and for rules that no test touches, too")
		flags.Int64Var(&o.maxRefused, "max-refused", -1, "exit 1 if more than this many `KEYS` would newly be refused; any number if not set")
		flags.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")
		return o.run
	},
}

type ciOptions struct {
	remote       remote
	layer        string
	base         string
	strict, json bool
	maxRefused   int64
}

// ciReport is the report for a pull request. Its JSON is printed as it is.
type ciReport struct {
	Passed   bool       `json:"passed"`
	Why      []string   `json:"why,omitempty"` // why it did not pass
	Problems diag.List  `json:"problems"`
	Tests    []tested   `json:"tests"`
	Plan     *rulesPlan `json:"plan,omitempty"`
	// PlanError says why there is no plan, or no plan of live keys.
	PlanError string `json:"plan_error,omitempty"`
}

func (o *ciOptions) run(ctx context.Context, env Env, args []string) int {
	switch {
	case o.base == "":
		return misused(env, "ci", "say what the rules are compared with: --base origin/main")
	case len(args) != 1:
		return misused(env, "ci", "name one rule file, or one folder of them")
	case o.maxRefused >= 0 && o.remote.server == "":
		return misused(env, "ci", "--max-refused needs --server, which knows the live keys")
	case o.layer != "" && o.remote.server == "":
		return misused(env, "ci", "--layer needs --server, which has the other layers")
	}
	if o.remote.server != "" {
		if err := o.remote.find(env); err != nil {
			return misused(env, "ci", "%v", err)
		}
	}
	report, err := o.report(ctx, env, args[0])
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate ci:", err)
		return exitFound
	}
	report.Passed = len(report.Why) == 0
	code := exitOK
	if o.json {
		code = printJSON(env, report)
	} else {
		fmt.Fprint(env.Stdout, report.markdown())
	}
	if !report.Passed {
		return exitFound
	}
	return code
}

// report makes the report. The error is about the checkout, not about the rules.
func (o *ciOptions) report(ctx context.Context, env Env, name string) (*ciReport, error) {
	base, err := newGitTree(ctx, o.base, name)
	if err != nil {
		return nil, err
	}
	r := &ciReport{Problems: append(diag.List{}, lint.File(name, lint.Options{})...), Tests: []tested{}}
	if o.layer != "" { // a server joins them with the other layers, and reports what is wrong
		r.Problems = slices.DeleteFunc(r.Problems, func(p diag.Problem) bool { return p.Check == "" })
	}
	errs, warnings := r.Problems.Count()
	if errs > 0 {
		r.fail("lint found %s", plural(errs, "error"))
	}
	if o.strict && warnings > 0 {
		r.fail("lint found %s", plural(warnings, "warning"))
	}
	o.test(ctx, r, name)
	if errs == 0 {
		o.plan(ctx, env, r, base, name)
	}
	return r, nil
}

func (r *ciReport) fail(format string, args ...any) {
	r.Why = append(r.Why, fmt.Sprintf(format, args...))
}

// test runs the tests beside the rules.
func (o *ciOptions) test(ctx context.Context, r *ciReport, name string) {
	folder, only := name, ""
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		folder = filepath.Dir(name)
		only = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)) + "_test"
	}
	names, err := testFiles(folder)
	if err != nil {
		names = nil // there are no tests
	}
	for _, n := range names {
		if only == "" || strings.TrimSuffix(filepath.Base(n), filepath.Ext(n)) == only {
			r.Tests = append(r.Tests, runTest(ctx, n))
		}
	}
	touchedByAny(r.Tests)
	failed, untouched := 0, 0
	for _, t := range r.Tests {
		if t.report == nil {
			failed++
			continue
		}
		failed += t.report.Failed()
		untouched = max(untouched, len(t.report.Untouched))
	}
	if failed > 0 {
		r.fail("%s failed", plural(failed, "test"))
	}
	if o.strict && len(r.Tests) == 0 {
		r.fail("there are no tests")
	}
	if o.strict && untouched > 0 {
		r.fail("no test touches %s", plural(untouched, "rule"))
	}
}

// plan compares the rules with those of the base, and asks the server for a plan.
func (o *ciOptions) plan(ctx context.Context, env Env, r *ciReport, base *gitTree, name string) {
	now, err := readTree(name, disk{})
	switch {
	case err != nil && o.layer != "":
		o.planLayer(ctx, env, r, name)
		return
	case err != nil: // lint has reported what is wrong
		r.PlanError = err.Error()
		r.fail("the rules cannot be read")
		return
	}
	p, err := base.compare(o.base, now)
	if err != nil {
		r.PlanError = err.Error()
		if p == nil {
			return // a broken base says nothing about this change
		}
	}
	r.Plan = p
	if o.remote.server == "" {
		return
	}
	q := now.proposal()
	q.Layer = o.layer
	o.askServer(ctx, env, r, q)
}

// planLayer is plan for a layer that needs others, which only the server can compare.
func (o *ciOptions) planLayer(ctx context.Context, env Env, r *ciReport, name string) {
	b, err := source.ReadBundle(name)
	if err != nil {
		r.PlanError = err.Error()
		r.fail("the rules cannot be read")
		return
	}
	r.Plan = &rulesPlan{New: name, Changes: []rulediff.Change{}, Counters: []rules.Change{}}
	o.askServer(ctx, env, r, proposalOf(o.layer, b))
}

// askServer adds the plan of a running server.
func (o *ciOptions) askServer(ctx context.Context, env Env, r *ciReport, q admin.Proposal) {
	p := r.Plan
	if err := p.ask(ctx, env, &o.remote, q); err != nil {
		r.PlanError = err.Error()
		if errors.As(err, new(*unusableError)) {
			r.fail("the server would refuse these rules")
		} else {
			r.fail("the server could not be asked")
		}
		return
	}
	if _, most := p.Live.newlyRefused(); o.maxRefused >= 0 && most > o.maxRefused {
		r.fail("%s would newly be refused, and at most %d may be", p.Live.refusedText(), o.maxRefused)
	}
	if o.maxRefused >= 0 && p.Live.Unknown != "" {
		r.fail("it is not known how many keys would be refused: %s", p.Live.Unknown)
	}
}

// errNoBase means that the base has no such rules.
var errNoBase = errors.New("the base has no rules there")
