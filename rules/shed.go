package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// ShedRule is the rule name under which requests are counted that file-wide shedding refuses.
const ShedRule = "(shed)"

// shedder sheds requests of a rule, or of all rules, while a signal is above its bound. Requests
// evaluate the signals as they come, at most every shedEvery; there is no goroutine.
type shedder struct {
	rule   string
	bounds []rulefile.Bound
	ranks  int  // how many classes may be shed
	last   int  // the number of the last class; 0 without classes
	shadow bool // shadow mode: nothing is refused
	tries  bool // nothing is refused, by its own mode or that of its rule
	set    *Set
	// refuse has a limit for each number of steps by which the level is above that of a request;
	// marks is for requests that are not refused.
	refuse []*tidegate.Limit
	marks  *tidegate.Limit

	due    atomic.Int64 // when the signals are evaluated next, in nanoseconds since origin
	steps  atomic.Int64 // a copy of level.steps
	ups    atomic.Int64
	downs  atomic.Int64
	sheds  atomic.Int64 // requests
	mu     sync.Mutex   // held while the signals are evaluated
	level  shedLevel
	origin time.Time // the zero of the times in level; never changes
}

// shedEvery is the shortest time between two evaluations of the signals.
const shedEvery = 100 * time.Millisecond

// shedder compiles the shedding of a rule with that mode, or of the file; nil if there is none.
func (c *compiler) shedder(w *rulefile.Shed, rule string, mode rulefile.Mode) *shedder {
	if w == nil {
		return nil
	}
	s := &shedder{
		rule: rule, bounds: w.While, ranks: c.file.Sheddable(w), last: max(0, len(c.file.Classes)-1),
		shadow: w.Mode == rulefile.Shadow, tries: w.Mode == rulefile.Shadow || mode == rulefile.Shadow, origin: c.config.now(),
	}
	limit := func(role tidegate.Role, retry time.Duration) *tidegate.Limit {
		answer := c.answerDefaults.answer(nil, true)
		answer.Status, answer.Message, answer.Body, answer.ContentType, answer.RetryAfter = 0, "", "", "", retry
		return c.must(tidegate.NewLimit(tidegate.Spec{
			Name: rule, Algorithm: tidegate.Deny,
			Terms: &tidegate.Terms{Rule: rule, Role: role, Answer: answer},
		}))
	}
	s.marks = limit(tidegate.Tries, 0)
	for above := 1; above <= s.most(); above++ {
		s.refuse = append(s.refuse, limit(tidegate.Sheds, time.Duration(above)*shedDown))
	}
	return s
}

// linkShedders collects all shedders, that of the file first.
func (s *Set) linkShedders() {
	if s.shed != nil {
		s.shedders = append(s.shedders, s.shed)
	}
	for _, r := range s.rules {
		if r.shed != nil && r.mode != rulefile.Disabled {
			s.shedders = append(s.shedders, r.shed)
		}
	}
	for _, sh := range s.shedders {
		sh.set = s
	}
}

// appendShed adds the check of a request that file-wide shedding affects.
func (st *state) appendShed(dst []tidegate.Check) []tidegate.Check {
	s := st.set.shed
	if s == nil || st.exempt >= 0 {
		return dst
	}
	if c, shed := s.check(st, st.ipKey(), false); shed {
		return append(dst, c)
	}
	return dst
}

// shedKey returns the key by which the rule sheds: what it counts by, or the address if all
// requests share a counter.
func (r *rule) shedKey(st *state, h *hit) string {
	for i := range r.subject.parts {
		if p := &r.subject.parts[i]; !p.id.always && p.rows == nil {
			return h.key
		}
	}
	return st.ipKey()
}

// text returns when requests are shed, and which ones first.
func (s *shedder) text() string {
	var bounds []string
	for i := range s.bounds {
		bounds = append(bounds, s.bounds[i].Text)
	}
	text := "while " + strings.Join(bounds, " or ")
	if classes := s.set.classes; len(classes) > 0 {
		text += ", " + classes[s.last] + " first"
		if s.ranks <= s.last {
			text += ", " + classes[s.last-s.ranks] + " never"
		}
	}
	if s.shadow {
		text += " (shadow)"
	}
	if steps := s.look(); steps > 0 {
		text += fmt.Sprintf("; now %d of %d steps", steps, s.most())
	}
	return text
}

// most returns the level at which everything that may be shed is shed.
func (s *shedder) most() int { return s.ranks * shedSteps }

// check returns the check that sheds a request or, if the shedding or the rule is only tried, marks
// it; shed is false if the level does not reach the request.
func (s *shedder) check(st *state, key string, try bool) (c tidegate.Check, shed bool) {
	steps := s.look()
	if steps == 0 {
		return c, false
	}
	rank := s.last - int(max(st.class, 0))
	if rank >= s.ranks {
		return c, false
	}
	above := shedLevel{steps: steps}.above(rank, tenthOf(key))
	if above == 0 {
		return c, false
	}
	if !st.request.Looking && !slices.Contains(st.shedBy, s) { // another reading of the path may have added it
		st.shedBy = append(st.shedBy, s)
	}
	if try || s.shadow {
		return tidegate.Check{Key: key, Limit: s.marks, Cost: 1, Advisory: true}, true
	}
	return tidegate.Check{Key: key, Limit: s.refuse[above-1], Cost: 1}, true
}

// countShed counts the request for each shedder that sheds it, unless one of checks is an access
// rule that refuses it: that takes precedence.
func (st *state) countShed(checks []tidegate.Check) {
	for i := range checks {
		if c := &checks[i]; c.Limit != nil && c.Limit.Algorithm == tidegate.Deny && !c.Advisory && !c.Limit.Sheds() {
			return
		}
	}
	for _, s := range st.shedBy {
		s.sheds.Add(1)
	}
}

// tenthOf returns which tenth of all keys a key belongs to: the same on every node and in every
// release.
func tenthOf(key string) int {
	return int(mixed(hashText(hashText(seedBasis, ShedRule), key)) % shedSteps)
}

// look returns the level. If it is due, it evaluates the signals first.
func (s *shedder) look() int {
	now := s.set.config.now().Sub(s.origin)
	if int64(now) < s.due.Load() || !s.mu.TryLock() {
		return int(s.steps.Load())
	}
	defer s.mu.Unlock()
	before := s.level.steps
	s.level = s.level.step(now, s.strain(), s.most())
	s.due.Store(int64(now + shedEvery))
	s.steps.Store(int64(s.level.steps))
	if s.level.steps != before {
		s.moved(before)
	}
	return s.level.steps
}

// moved counts and reports a step.
func (s *shedder) moved(before int) {
	if s.level.steps > before {
		s.ups.Add(1)
	} else {
		s.downs.Add(1)
	}
	if tell := s.set.config.OnShed; tell != nil {
		tell(s.status())
	}
}

// strain returns how the signals compare with their bounds; an unknown signal is calm.
func (s *shedder) strain() (worst strain) {
	for i := range s.bounds {
		if v, ok := s.set.signal(s.bounds[i].Signal.Text); ok {
			worst = max(worst, strainOf(v, s.bounds[i].Above))
		}
	}
	return worst
}

// signal returns the value that shedding uses.
func (s *Set) signal(name string) (value float64, ok bool) {
	switch signals := s.config.Signals.(type) {
	case nil:
		return 0, false
	case Recent:
		return signals.Recent(name)
	default:
		return signals.Signal(name)
	}
}

// Shedding is how much is shed by a rule, or file-wide.
type Shedding struct {
	Rule string // ShedRule if it is file-wide
	// Steps of Most: tenths of the classes that may be shed, the least important first. With 10
	// steps the last class is shed, with 15 also half of the class above it.
	Steps, Most int
	// Class is the class of which a part is shed, and Share how much of it, from 0 to 1; all
	// classes below it are shed. Class is "" if there are no classes, or nothing is shed.
	Class string
	Share float64
	// Over are the exceeded bounds, as written, with the values.
	Over []ExceededBound
	// Shadow: nothing is refused.
	Shadow bool
	// Ups and Downs count the steps since the rules were first loaded, and Requests the requests
	// that were shed, or would have been.
	Ups, Downs, Requests int64
}

// ExceededBound is a signal above its bound.
type ExceededBound struct {
	Bound string // cpu > 85%
	Value float64
}

// Shedding returns how much is shed by each rule that may shed, and file-wide. It evaluates the
// signals.
func (s *Set) Shedding() []Shedding {
	var all []Shedding
	for _, sh := range s.shedders {
		sh.look()
		sh.mu.Lock()
		all = append(all, sh.status())
		sh.mu.Unlock()
	}
	return all
}

// status returns the state of s. The caller holds mu.
func (s *shedder) status() Shedding {
	is := Shedding{
		Rule: s.rule, Steps: s.level.steps, Most: s.most(), Shadow: s.shadow,
		Ups: s.ups.Load(), Downs: s.downs.Load(), Requests: s.sheds.Load(),
	}
	if is.Steps > 0 {
		rank := (is.Steps - 1) / shedSteps
		is.Share = float64(is.Steps-rank*shedSteps) / shedSteps
		if len(s.set.classes) > 0 {
			is.Class = s.set.classes[s.last-rank]
		}
	}
	for i := range s.bounds {
		if v, ok := s.set.signal(s.bounds[i].Signal.Text); ok && v > s.bounds[i].Above {
			is.Over = append(is.Over, ExceededBound{s.bounds[i].Text, v})
		}
	}
	return is
}

// inherit takes over the level and the counts of was. If was only tried and s decides, it begins at
// level 0: the load may have grown unchecked, and all of the excess would be refused at once.
func (s *shedder) inherit(was *shedder) {
	was.mu.Lock()
	level := was.level.shifted(was.origin.Sub(s.origin))
	was.mu.Unlock()
	if was.tries && !s.tries {
		level = shedLevel{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	level.steps = min(level.steps, s.most())
	s.level = level
	s.due.Store(0)
	s.steps.Store(int64(level.steps))
	s.ups.Store(was.ups.Load())
	s.downs.Store(was.downs.Load())
	s.sheds.Store(was.sheds.Load())
}

// shedOn continues the levels of old, which s replaces.
func (s *Set) shedOn(old *Set) {
	for _, sh := range s.shedders {
		for _, was := range old.shedders {
			if was != sh && was.rule == sh.rule {
				sh.inherit(was)
			}
		}
	}
}
