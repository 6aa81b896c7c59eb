package ruletest

import (
	"context"
	"maps"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// Report is the result of running a test file.
type Report struct {
	File      string       `json:"file"`
	Rules     string       `json:"rules"`
	Reloads   []string     `json:"reloads,omitempty"` // rule files that steps put in force
	Cases     []CaseReport `json:"cases"`
	Steps     int          `json:"steps"`
	Requests  int          `json:"requests"`
	Answers   []Answer     `json:"answers,omitempty"` // of steps that expect one
	Untouched []string     `json:"untouched_rules"`   // rules that no request met, including those of Reloads
	Touched   []string     `json:"-"`                 // rules that some request met
}

// CaseReport is the result of a case; it passed if nothing failed.
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

// Failed returns how many cases failed.
func (r *Report) Failed() (n int) {
	for _, c := range r.Cases {
		if len(c.Failures) > 0 {
			n++
		}
	}
	return n
}

// Run runs every case with new counters. The error is why the rules do not load.
func (f *File) Run(ctx context.Context, c rules.Config) (*Report, error) {
	report := &Report{File: f.Name, Rules: f.Rules, Reloads: f.Reloads, Untouched: []string{}}
	touched, known := make(map[string]bool), make(map[string]bool)
	for i := range f.cases {
		run, err := f.start(&f.cases[i], c, touched)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			report.meets(run.set, known)
		}
		for j := range run.steps {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s := &run.steps[j]
			if s.Reload != "" {
				if err := run.reload(ctx, s); err != nil {
					return nil, err
				}
				report.meets(run.set, known)
				continue
			}
			run.step(ctx, s)
			run.touchUncounted(s)
		}
		report.Steps += len(run.steps)
		report.Requests += run.requests
		report.Cases = append(report.Cases, CaseReport{Name: run.name, Failures: run.failures})
		report.Answers = append(report.Answers, run.answers...)
	}
	report.Touched = slices.Sorted(maps.Keys(touched))
	report.Untouched = slices.DeleteFunc(report.Untouched, func(name string) bool { return touched[name] })
	return report, nil
}

// RuleFiles returns the rule files that were in force: Rules and Reloads.
func (r *Report) RuleFiles() []string { return append([]string{r.Rules}, r.Reloads...) }

// meets records the rules of a set in force, unless they are known. Rules are identified by name,
// whichever file they are in.
func (r *Report) meets(set *rules.Set, known map[string]bool) {
	for _, name := range set.Rules() {
		if !known[name] {
			known[name] = true
			r.Untouched = append(r.Untouched, name)
		}
	}
}

// running is a case that is being run.
type running struct {
	name     string
	file     *File
	steps    []step
	config   rules.Config
	set      *rules.Set // in force
	live     *rules.Live
	gate     *tidegate.Gate
	front    *httplimit.Front
	clock    clock
	visits   []visit // in progress, the next to end first
	touched  map[string]bool
	requests int
	failures []Failure
	answers  []Answer

	trace trace // of the last request
}

func (f *File) start(c *scenario, config rules.Config, touched map[string]bool) (*running, error) {
	r := &running{name: c.Name, file: f, steps: c.Steps, clock: clock{now: c.Start, start: c.Start}, touched: touched, front: newFront()}
	config.Now, config.MergeDomains = r.clock.read, true
	r.config = config
	layers := make([]rules.Layer, len(f.Layers))
	for i, name := range f.Layers {
		layers[i].Name = name
	}
	set, err := rules.LoadLayers(layers, config)
	if err != nil {
		return nil, err
	}
	r.set, r.live = set, rules.NewLive(set)
	store := memory.Open(memory.Config{Now: r.clock.read})
	r.gate = tidegate.NewGate(r.live, store).Observe(r.observe)
	return r, nil
}

// reload puts the rules of a step in force, as a running server does. The error is why they do not
// load.
func (r *running) reload(ctx context.Context, s *step) error {
	r.advance(ctx, s.At)
	set, err := rules.Load(s.Reload, r.config)
	if err != nil {
		return err
	}
	r.live.Swap(set)
	r.set = set
	return nil
}

// touchUncounted marks as touched the rules that apply to the request of a step without any limit,
// which the gate does not see, and disabled rules, which no request can touch.
func (r *running) touchUncounted(s *step) {
	if !slices.ContainsFunc(r.set.Rules(), func(rule string) bool { return !r.touched[rule] }) {
		return
	}
	for _, x := range r.live.Explain(s.newRequest()).Rules {
		if x.Applies && x.Unlimited || x.Mode == "disabled" {
			r.touched[x.Name] = true
		}
	}
}

// observe records which rules a request met. It copies what it needs: checks belong to the gate.
func (r *running) observe(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
	r.trace = trace{}
	for i := range checks {
		rule := checks[i].Limit.Terms.Rule
		r.touched[rule] = true
		r.trace.add(rule, &checks[i])
	}
}
