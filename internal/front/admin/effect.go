package admin

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules"
)

// measureID returns the same ID for the same rule and callers, so that a second measure about them
// replaces the first, wherever it is ordered.
func measureID(m *rules.Measure) string {
	who := m.Who()
	for _, value := range m.As {
		if strings.Contains(value, ", ") { // it could be read as several identities
			who = fmt.Sprintf("%q", m.As)
		}
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", m.Kind, m.Rule, who))
	kind := string(m.Kind)
	return strings.ToLower(kind[:min(len(kind), 8)] + "-" + base32.HexEncoding.EncodeToString(hash[:5]))
}

// effect returns what a measure changes: the affected counters, as they are and as they would be.
func (s *server) effect(ctx context.Context, m *rules.Measure) Effect {
	e := Effect{Measure: *m, Counters: []Counter{}}
	others := slices.DeleteFunc(s.ordered(), func(o rules.Measure) bool {
		if o.ID == m.ID {
			e.Replaces = &o
		}
		return o.ID == m.ID
	})
	question := Question{Rule: m.Rule, As: m.As}
	e.Counters = s.countersUnder(ctx, s.Rules.Live(), question)
	if m.Kind == rules.Override {
		with := rules.NewLive(s.Rules.Live().Set())
		with.SetMeasures(append(others, *m))
		e.Then = s.countersUnder(ctx, with, question)
	}
	return e
}

// effectTime is how long an order waits to read counters: it must work even while the store is
// slow.
const effectTime = 500 * time.Millisecond

// countersUnder returns the counters of a question under live. On an error it returns none: a ban
// of a network can still be previewed.
func (s *server) countersUnder(ctx context.Context, live *rules.Live, q Question) []Counter {
	f := finder{question: q, live: live, found: []Counter{}}
	if f.run() != nil {
		return []Counter{}
	}
	ctx, cancel := context.WithTimeout(ctx, effectTime)
	defer cancel()
	_ = s.look(ctx, f.found) // those that the store cannot tell about say so
	return f.found
}

// wouldHold says, in words, on which instances a measure would be in force within a second, and which
// would get it later.
func (s *server) wouldHold(ctx context.Context) string {
	if s.Fleet == nil {
		return "would hold on this instance, which is the only one"
	}
	is, err := s.Fleet(ctx)
	if err != nil {
		return "would hold on this instance at once, and on the others when Redis answers again: " + err.Error()
	}
	var behind []string
	for i := range is.Instances {
		if one := &is.Instances[i]; !one.Self && (!one.Known || one.Circuit == nil || one.Circuit.Status != "ok") {
			behind = append(behind, one.Name+" "+one.ID)
		}
	}
	if len(behind) > 0 {
		return fmt.Sprintf("would hold on %d of %d instances within a second; these do not follow Redis now: %s", len(is.Instances)-len(behind), len(is.Instances), strings.Join(behind, ", "))
	}
	return fmt.Sprintf("would hold on all %d instances within a second", len(is.Instances))
}
