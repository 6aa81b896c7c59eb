package node

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// Unasked is a rule that the backend cannot be asked about although it works (see
// tidegate.ErrCannotAsk). The fallback of the rule decides; other rules are not affected.
type Unasked struct {
	Rule  string // its limit's name; those of all limits that were asked about together
	Why   error  // the last error
	Since time.Time
	Count int64 // requests, since New
	// Over: it can be asked about again.
	Over bool
}

// unasked has the rules that cannot be asked about. For a rule, that ends when there were answers and,
// for unaskedHold, no failure: perhaps only one key, or one command, was at fault. Without answers it
// ends after unaskedLong.
type unasked struct {
	some   atomic.Bool // for some rule it is not over
	tell   func(Unasked)
	mu     sync.Mutex
	byRule map[string]*unaskedRule // under mu
	closed bool                    // under mu
}

type unaskedRule struct {
	Unasked
	failed   time.Time
	answered bool // since the last failure
}

const (
	unaskedHold = 2 * time.Second  // without a failure, if there are answers
	unaskedLong = 10 * time.Minute // without a failure, if nobody asks
	maxUnasked  = 1024
)

// note notes that checks cannot be asked about, if that is what err says.
func (u *unasked) note(checks []tidegate.Check, err error, now time.Time) {
	if !errors.Is(err, tidegate.ErrCannotAsk) {
		return
	}
	name := rulesOf(checks)
	u.mu.Lock()
	r := u.byRule[name]
	if r == nil {
		if len(u.byRule) >= maxUnasked {
			u.mu.Unlock()
			return
		}
		if u.byRule == nil {
			u.byRule = make(map[string]*unaskedRule)
		}
		r = &unaskedRule{Unasked: Unasked{Rule: strings.Clone(name), Over: true}}
		u.byRule[r.Rule] = r
	}
	began := r.Over
	if began {
		r.Over, r.Since = false, now
	}
	r.Why, r.failed, r.answered = err, now, false
	r.Count++
	u.some.Store(true)
	told := r.Unasked
	u.mu.Unlock()
	if began {
		u.say(told)
		time.AfterFunc(unaskedHold, func() { u.look(r) })
	}
}

func (u *unasked) say(told Unasked) {
	if u.tell != nil {
		u.tell(told)
	}
}

// answered notes that the backend has answered about checks.
func (u *unasked) answered(checks []tidegate.Check) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := u.byRule[rulesOf(checks)]; r != nil {
		r.answered = true
	}
}

// barred reports whether the backend could not be asked about l when it was last asked.
func (u *unasked) barred(l *tidegate.Limit) bool {
	if !u.some.Load() {
		return false
	}
	name := nameOf(l)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.byRule {
		if !r.Over && !r.answered && (r.Rule == name || slices.Contains(strings.Split(r.Rule, ", "), name)) {
			return true
		}
	}
	return false
}

// look checks whether r can be asked about again; if not, it checks again later.
func (u *unasked) look(r *unaskedRule) {
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return
	}
	quiet := time.Since(r.failed)
	if r.Over = quiet >= unaskedLong || quiet >= unaskedHold && r.answered; !r.Over {
		u.mu.Unlock()
		time.AfterFunc(max(unaskedHold-quiet, unaskedHold/4), func() { u.look(r) })
		return
	}
	told, some := r.Unasked, false
	for _, other := range u.byRule {
		some = some || !other.Over
	}
	u.some.Store(some)
	u.mu.Unlock()
	u.say(told)
}

// all returns everything that was ever noted, by name.
func (u *unasked) all() (all []Unasked) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(u.byRule)) {
		all = append(all, u.byRule[name].Unasked)
	}
	return all
}

func (u *unasked) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
}

// rulesOf returns the names of the limits of the checks that decide.
func rulesOf(checks []tidegate.Check) string {
	var names []string
	for i := range checks {
		name := nameOf(checks[i].Limit)
		if len(checks) == 1 {
			return name
		}
		if !checks[i].Advisory && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func nameOf(l *tidegate.Limit) string {
	if l.Name == "" {
		return l.String()
	}
	return l.Name
}
