package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Measure is an operator's order about particular callers, beyond the rules: a ban, or an override
// of the limits of a rule. [Live.SetMeasures] puts measures in force.
//
// Precedence, from high to low: ban, exemption, override, branch of `for`, tier.
type Measure struct {
	// ID is chosen by whoever orders it: a-z, 0-9 and dashes, at most 32 bytes.
	ID   string      `json:"id"`
	Kind MeasureKind `json:"kind"`
	// As says which callers it is about by identities, all of which must match, as in {"user":
	// "42"}. An address may also be a network. {"everyone": ""} matches all.
	As map[string]string `json:"as"`
	// Rule is the rule that an override is about. A ban with a rule refuses only requests that the
	// rule applies to; a ban without one refuses all.
	Rule string `json:"rule,omitempty"`
	// Limits of an override replace those of the rule: rates such as "5000/minute", an amount of
	// its quota such as "100000/month", "20 slots", or "unlimited" alone, which lifts all limits of
	// the rule, and its block.
	Limits []string `json:"limits,omitempty"`
	// Until is when the measure ends by itself; the zero time means that it lasts until it is
	// removed.
	Until time.Time `json:"until,omitzero"`
	// Reason is for operators. Clients are not told.
	Reason string `json:"reason"`
	// Message is what a ban tells clients; "" tells them only that they are refused.
	Message string    `json:"message,omitempty"`
	By      string    `json:"by"` // who ordered it
	At      time.Time `json:"at"` // when
}

// MeasureKind is what a measure does.
type MeasureKind string

const (
	// Ban refuses every request of the callers or, if the Measure names a rule, those that the rule
	// applies to.
	Ban MeasureKind = "ban"
	// Override replaces the limits of a rule.
	Override MeasureKind = "override"
)

// BanRule is the rule name under which refusals by bans without a rule are counted.
const BanRule = "(ban)"

// Who returns a description of the callers that the measure is about: "tenant=acme, user=42".
func (m *Measure) Who() string {
	if _, all := m.As["everyone"]; all && len(m.As) == 1 {
		return "everyone"
	}
	parts := make([]string, 0, len(m.As))
	for _, name := range slices.Sorted(maps.Keys(m.As)) {
		parts = append(parts, name+"="+m.As[name])
	}
	return strings.Join(parts, ", ")
}

// Ended reports whether the measure is over.
func (m *Measure) Ended(now time.Time) bool { return !m.Until.IsZero() && !now.Before(m.Until) }

// String describes the measure in a line.
func (m *Measure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s of %s", m.Kind, m.ID, m.Who())
	if m.Rule != "" {
		fmt.Fprintf(&b, " for rule %s", m.Rule)
	}
	if len(m.Limits) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(m.Limits, ", "))
	}
	if m.By != "" {
		fmt.Fprintf(&b, ", by %s", m.By)
	}
	if m.Until.IsZero() {
		b.WriteString(", until it is ended")
	} else {
		fmt.Fprintf(&b, ", until %s", m.Until.UTC().Format(time.RFC3339))
	}
	if m.Reason != "" {
		fmt.Fprintf(&b, " (%s)", m.Reason)
	}
	return b.String()
}

// MeasureProblem is why a measure cannot be ordered, or is no longer in force.
type MeasureProblem struct {
	ID      string `json:"id"`
	Field   string `json:"field"` // of the Measure, by its name in JSON
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to write instead
}

// Error says which measure it is about, what is wrong, and what to write instead.
func (p MeasureProblem) Error() string { return "measure " + p.ID + ": " + p.text() }

func (p *MeasureProblem) text() string {
	if p.Hint == "" {
		return p.Field + ": " + p.Message
	}
	return p.Field + ": " + p.Message + ": " + p.Hint
}

// MeasureProblems are all problems of one measure.
type MeasureProblems []MeasureProblem

// Error returns all problems, one per line.
func (ps MeasureProblems) Error() string {
	lines := make([]string, len(ps))
	for i := range ps {
		lines[i] = ps[i].text()
	}
	return strings.Join(lines, "\n")
}
