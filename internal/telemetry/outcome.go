package telemetry

import "sync/atomic"

// outcome is what became of a request by a rule.
type outcome int

const (
	// ok: the rule had room, and the request was admitted.
	ok outcome = iota
	// soft: the same, above the nominal limit.
	soft
	// refused: by a limit of the rule.
	refused
	// denied: by an access rule, or for want of an identity that the rule insists on.
	denied
	// shadowRefused: a rule in shadow mode, or a candidate limit, would have refused
	// what was admitted. Beside it a rule with a candidate has its own outcome.
	shadowRefused
	// failed: the store could not tell. Whether the request was admitted is for the
	// rule's on_store_failure.
	failed
	// canceled: the client left while it waited in line.
	canceled

	outcomes // how many there are
)

// outcomeNames are the values of the label.
var outcomeNames = [outcomes]string{"ok", "soft", "refused", "denied", "shadow_refused", "error", "canceled"}

// counters are one for each outcome, apart from those of other rules: 64 bytes are
// what two processors fight for.
type counters struct {
	n [outcomes]atomic.Uint64
	_ [1]uint64
}

func (c *counters) add(o outcome) { c.n[o].Add(1) }
