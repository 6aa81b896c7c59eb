package admin

import (
	"net/http"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
)

// finder collects the counters of a question.
type finder struct {
	question Question
	live     *rules.Live
	found    []Counter
	measures []rules.Measure // that match the callers in question
	why      string          // why the named rule counts nothing; "" if that is not known
}

// run finds the counters. It returns an error if the URL is not one, or if the named rule counts
// nothing.
func (f *finder) run() error {
	if f.question.URL != "" {
		r, err := f.question.request()
		if err != nil {
			return err
		}
		if f.question.Rule == "" {
			f.look(f.live.Explain(r), "")
		} else {
			f.look(f.live.ExplainRule(r, f.question.Rule), f.question.Rule)
		}
	} else {
		f.sampleAll()
	}
	if f.question.Rule != "" && len(f.found) == 0 && len(f.measures) == 0 {
		return problemf(http.StatusNotFound, "The rule %s counts nothing here: %s.", f.question.Rule, f.why)
	}
	return nil
}

// sampleAll explains made-up requests for each rule in question. There may be thousands of rules, so
// a request is explained for its own rule alone; if many rules share its pattern, it is explained
// once, for all rules.
func (f *finder) sampleAll() {
	set := f.live.Set()
	names := set.Rules()
	if f.question.Rule != "" {
		names = []string{f.question.Rule}
	}
	users := make(map[string]int) // of patterns
	for _, rule := range names {
		for _, pattern := range patternsOf(set, rule) {
			users[pattern]++
		}
	}
	shared := make(map[string]rules.Explanation)
	for _, rule := range names {
		for _, pattern := range patternsOf(set, rule) {
			r := sampleOf(pattern, f.question.As)
			if r == nil {
				continue
			}
			if few := len(names)/8 + 1; len(names) == 1 || users[pattern] < few {
				f.look(f.live.ExplainRule(r, rule), rule)
				continue
			}
			e, known := shared[pattern]
			if !known {
				e = f.live.Explain(r)
				shared[pattern] = e
			}
			f.look(e, rule)
		}
	}
}

// look adds the counters of an explained request under rule, or under all rules if it is "".
func (f *finder) look(e rules.Explanation, rule string) {
	f.addMeasure(e.Ban)
	for i := range e.Rules {
		x := &e.Rules[i]
		if rule != "" && x.Name != rule {
			continue
		}
		f.addMeasure(x.Override)
		if why := f.whyNot(x, e.Identities); why != "" {
			f.why = why
			continue
		}
		for _, c := range x.Checks {
			f.add(x.Name, c)
		}
	}
}

// whyNot returns why a rule has no counter in question; "" if it has. A rule that was not named must
// count by a named identity: a question about user 42 is not about the limit that all share. And
// all identities that it counts by must be known, otherwise the counter would be that of callers
// without them.
func (f *finder) whyNot(x *rules.ExplainedRule, ids []rules.FoundIdentity) string {
	switch {
	case !x.Applies || x.Why != "": // some rules refuse if an identity is missing
		return x.Why
	case len(x.Checks) > 0 && x.Checks[0].Check.Limit.Algorithm == tidegate.Deny:
		return "it denies"
	case x.Unlimited:
		return "it does not limit them"
	}
	named := f.question.Rule != ""
	for part := range strings.SplitSeq(x.Scope, ",") {
		name, _, _ := strings.Cut(part, "/")
		if _, ok := f.question.As[name]; ok {
			named = true
			continue
		}
		missing := func(id rules.FoundIdentity) bool { return id.Name == name && id.Missing }
		if slices.ContainsFunc(ids, missing) {
			return "it counts by " + x.Per + ", and this does not say who that is; name them by as"
		}
	}
	if !named {
		return "it counts by " + x.Per
	}
	return ""
}

// addMeasure adds a measure once.
func (f *finder) addMeasure(m *rules.Measure) {
	if m != nil && !slices.ContainsFunc(f.measures, func(o rules.Measure) bool { return o.ID == m.ID }) {
		f.measures = append(f.measures, *m)
	}
}

func (f *finder) add(rule string, c rules.ExplainedCheck) {
	made := Counter{Rule: rule, Role: c.Role, Limit: c.Limit, Scope: c.Scope, Key: c.Key, Subject: c.Subject, check: c.Check}
	if !slices.ContainsFunc(f.found, func(before Counter) bool { return before.same(&made) }) {
		f.found = append(f.found, made)
	}
}
