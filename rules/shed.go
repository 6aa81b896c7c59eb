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

// ShedRule is the name under which requests are counted that are shed by what the file says for all
// rules.
const ShedRule = "(shed)"

// shedder sheds requests of a rule, or of all, while a signal is above its bound. Signals are looked at
// by the requests that come, every so often; there is no goroutine.
type shedder struct {
	rule   string
	bounds []rulefile.Bound
	ranks  int  // how many classes may be shed
	last   int  // the number of the last class; 0 without classes
	shadow bool // its mode: nobody is refused
	tries  bool // nobody is refused: by its mode, or by that of its rule
	set    *Set
	// refuse has a limit for every number of steps that a request is above what is admitted; marks is
	// for requests that are not refused.
	refuse []*tidegate.Limit
	marks  *tidegate.Limit

	due    atomic.Int64 // when the signals are looked at again, in nanoseconds since origin
	steps  atomic.Int64 // of level
	ups    atomic.Int64
	downs  atomic.Int64
	sheds  atomic.Int64 // requests
	mu     sync.Mutex   // held while the signals are looked at
	level  shedLevel
	origin time.Time // level's times count from here
}

// shedEvery is how often the signals are looked at, at most.
const shedEvery = 100 * time.Millisecond

// shedder compiles what a rule in a mode, or the file, says about shedding; nil if it says nothing.
func (c *compiler) shedder(w *rulefile.Shed, rule string, mode rulefile.Mode) *shedder {
	if w == nil {
		return nil
	}
	s := &shedder{
		rule: rule, bounds: w.While, ranks: c.file.Sheddable(w), last: max(0, len(c.file.Classes)-1),
		shadow: w.Mode == rulefile.Shadow, tries: w.Mode == rulefile.Shadow || mode == rulefile.Shadow, origin: c.config.now(),
	}
	limit := func(role tidegate.Role, retry time.Duration) *tidegate.Limit {
		answer := c.house.answer(nil, true)
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

// linkShedders collects what sheds, that of the file first.
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

// appendShed adds the check of a request that is shed by what the file says.
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

// shedKey is whom the rule sheds: who it counts, or the address where it counts all as one.
func (r *rule) shedKey(st *state, h *hit) string {
	for i := range r.subject.parts {
		if p := &r.subject.parts[i]; !p.id.always && p.rows == nil {
			return h.key
		}
	}
	return st.ipKey()
}

// text says when requests are shed, and which first.
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

// most is the level at which everything is shed that may be.
func (s *shedder) most() int { return s.ranks * shedSteps }

// check returns the check of a request that is shed.
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
	if !st.request.Looking && !slices.Contains(st.shedBy, s) { // by another reading of the path
		st.shedBy = append(st.shedBy, s)
	}
	if try || s.shadow {
		return tidegate.Check{Key: key, Limit: s.marks, Cost: 1, Advisory: true}, true
	}
	return tidegate.Check{Key: key, Limit: s.refuse[above-1], Cost: 1}, true
}

// countShed counts a request that is held to checks for those that shed it, unless an access rule
// refuses it: that goes first.
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

// tenthOf returns in which tenth of all keys a key is, the same on every node and in every release.
func tenthOf(key string) int {
	return int(mixed(hashText(hashText(seedBasis, ShedRule), key)) % shedSteps)
}

// look returns the level, for which it looks at the signals if that is due.
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

// moved tells of a step.
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

// strain is how the signals stand to their bounds: a signal that is not known is calm.
func (s *shedder) strain() (worst strain) {
	for i := range s.bounds {
		if v, ok := s.set.signal(s.bounds[i].Signal.Text); ok {
			worst = max(worst, strainOf(v, s.bounds[i].Above))
		}
	}
	return worst
}

// signal returns what shedding goes by.
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

// Shedding is how much is shed by a rule, or by what the file says for all.
type Shedding struct {
	Rule string // ShedRule for that of the file
	// Steps of Most: tenths of the classes that may be shed, the least important first. With 10 the last
	// class is shed, with 15 half of the one above it as well.
	Steps, Most int
	// Class is the one that a part of is shed, and Share which part, from 0 to 1; all below it are shed.
	// Class is "" where there are no classes, or nothing is shed.
	Class string
	Share float64
	// Over are the bounds that are exceeded, as they are written, with the values.
	Over []ExceededBound
	// Shadow: nobody is refused.
	Shadow bool
	// Ups and Downs are how often it has moved since the rules were loaded first, and Requests how many
	// requests were shed, or would have been.
	Ups, Downs, Requests int64
}

// ExceededBound is a signal above its bound.
type ExceededBound struct {
	Bound string // cpu > 85%
	Value float64
}

// Shedding returns how much is shed by each rule that may shed, and by the file. It looks at the
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

// status is called with mu held.
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

// inherit takes the level and the counts of was. Where was only tried, it begins at no level: nobody was
// refused, so that the load could only grow, and all of that would be refused at once.
func (s *shedder) inherit(was *shedder) {
	was.mu.Lock()
	level, origin := was.level, was.origin
	was.mu.Unlock()
	if was.tries && !s.tries {
		level = shedLevel{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	level.steps = min(level.steps, s.most())
	s.level, s.origin = level, origin
	s.due.Store(0)
	s.steps.Store(int64(level.steps))
	s.ups.Store(was.ups.Load())
	s.downs.Store(was.downs.Load())
	s.sheds.Store(was.sheds.Load())
}

// shedOn goes on with the levels of old, whose place s takes.
func (s *Set) shedOn(old *Set) {
	for _, sh := range s.shedders {
		for _, was := range old.shedders {
			if was != sh && was.rule == sh.rule {
				sh.inherit(was)
			}
		}
	}
}
