package ruletest

import (
	"context"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// Report is what came of a test file.
type Report struct {
	File      string       `json:"file"`
	Rules     string       `json:"rules"`
	Cases     []CaseReport `json:"cases"`
	Steps     int          `json:"steps"`
	Requests  int          `json:"requests"`
	Untouched []string     `json:"untouched_rules"` // rules that no request met
}

// CaseReport is what came of a case; it passed when nothing failed.
type CaseReport struct {
	Name     string    `json:"name"`
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is an expectation that did not hold.
type Failure struct {
	rules.Pos
	Source  string   `json:"source"`
	Message string   `json:"message"`
	Why     []string `json:"why"`
}

// Failed is how many cases failed.
func (r *Report) Failed() (n int) {
	for _, c := range r.Cases {
		if len(c.Failures) > 0 {
			n++
		}
	}
	return n
}

// Run runs every case with counters of its own. The error is that the rules do
// not load.
func (f *File) Run(ctx context.Context, c rules.Config) (*Report, error) {
	report := &Report{File: f.Name, Rules: f.Rules}
	touched := make(map[string]bool)
	for i := range f.cases {
		run, err := f.start(&f.cases[i], c, touched)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			report.Untouched = run.set.Rules()
		}
		for j := range run.steps {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			run.step(ctx, &run.steps[j])
			run.touchUncounted(&run.steps[j])
		}
		report.Steps += len(run.steps)
		report.Requests += run.requests
		report.Cases = append(report.Cases, CaseReport{Name: run.name, Failures: run.failures})
	}
	report.Untouched = slices.DeleteFunc(report.Untouched, func(name string) bool { return touched[name] })
	return report, nil
}

// running is a case on its way.
type running struct {
	name     string
	file     *File
	steps    []step
	set      *rules.Set
	gate     *tidegate.Gate
	clock    clock
	visits   []visit // not yet ended, the next to end first
	touched  map[string]bool
	requests int
	failures []Failure

	trace trace // of the last request
}

func (f *File) start(c *scenario, config rules.Config, touched map[string]bool) (*running, error) {
	r := &running{name: c.Name, file: f, steps: c.Steps, clock: clock{now: c.Start, start: c.Start}, touched: touched}
	config.Now = r.clock.read
	set, err := rules.Load(f.Rules, config)
	if err != nil {
		return nil, err
	}
	r.set = set
	store := memory.Open(memory.Config{Now: r.clock.read})
	r.gate = tidegate.NewGate(set, store).Observe(r.observe)
	return r, nil
}

// touchUncounted marks the rules that apply to the request of a step and hold it to
// nothing, which the gate does not see, and those that are disabled, which no request
// can touch.
func (r *running) touchUncounted(s *step) {
	if !slices.ContainsFunc(r.set.Rules(), func(rule string) bool { return !r.touched[rule] }) {
		return
	}
	for _, x := range r.set.Explain(s.newRequest()).Rules {
		if x.Applies && x.Unlimited || x.Mode == "disabled" {
			r.touched[x.Name] = true
		}
	}
}

// observe keeps which rules a request met: checks belong to the gate.
func (r *running) observe(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
	r.trace = trace{}
	for i := range checks {
		rule := checks[i].Limit.Terms.Rule
		r.touched[rule] = true
		r.trace.add(rule, &checks[i])
	}
}
