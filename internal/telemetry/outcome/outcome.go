// Package outcome names the outcomes of a request and what decided them. The access
// log and the metrics share these names, so that both call a thing the same. It
// counts and writes nothing.
//
// Start with [Of].
package outcome

import (
	"context"
	"errors"

	"tidegate.dev/tidegate"
)

// Outcome is what became of a request, by all rules or by one.
type Outcome int

const (
	// OK: there was room, and the request was admitted. Where a rule in shadow mode
	// alone could not be asked, it is this as well.
	OK Outcome = iota
	// Waited: the same, after it waited in a queue.
	Waited
	// Soft: admitted, above the nominal limit.
	Soft
	// Refused: by a limit.
	Refused
	// Denied: by an access rule, or for want of an identity that the rule insists on.
	Denied
	// Failed: an enforced rule has no answer of any counter. Whether the request was
	// admitted is for the rule's on_store_failure.
	Failed
	// Canceled: the client left before there was an answer, for example while it waited in a queue.
	Canceled

	// Whole is how many outcomes a request can have. The rest is said of rules alone.
	Whole

	// ShadowRefused: a rule in shadow mode, or a candidate limit, would have refused
	// what was admitted. Beside it a rule with a candidate has its own outcome.
	ShadowRefused = Whole
	// ShadowFailed: a rule in shadow mode has no answer of any counter.
	ShadowFailed = Whole + 1

	// The following are told beside one of those above, and say more about it.

	// Candidate: beside ShadowRefused, it is the candidate of a rule that is enforced.
	Candidate = Whole + 2
	// Elastic: beside Soft, the room above the nominal limit is that of an elastic limit.
	Elastic = Whole + 3
	// Queued: the request waited in a queue of the rule, whether it was admitted then or not.
	Queued = Whole + 4
	// FailedOpen: beside Failed, the request was admitted.
	FailedOpen = Whole + 5
	// FailedClosed: beside Failed, the request was refused.
	FailedClosed = Whole + 6
	// FailedLocal: the store had no answer, and counters of this process decided.
	FailedLocal = Whole + 7
	// Deferred: beside Refused, the request was kept, to be sent to the upstream later.
	Deferred = Whole + 8

	// Count is how many there are.
	Count = Whole + 9
)

var names = [Count]string{
	"ok", "waited", "soft", "refused", "denied", "error", "canceled", "shadow_refused", "shadow_error",
	"candidate", "elastic", "queued", "failed_open", "failed_closed", "failed_local", "deferred",
}

// String returns the word for o in the access log and in labels of metrics.
func (o Outcome) String() string { return names[o] }

// Of returns what became of a request by all rules together.
func Of(d *tidegate.Decision) Outcome {
	switch {
	case d.Err != nil && errors.Is(d.Err, context.Canceled): // whatever the fail mode makes of it
		return Canceled
	case d.Err != nil && d.Limit != nil: // else only rules in shadow mode were asked about
		return Failed
	case d.OK && d.Soft:
		return Soft
	case d.OK && d.Queued:
		return Waited
	case d.OK:
		return OK
	case d.Limit != nil && d.Limit.Algorithm == tidegate.Deny && !d.Limit.Sheds():
		return Denied
	case d.Err != nil:
		return Failed
	}
	return Refused
}

// Decided reports whether there was a decision, and so a word from DecidedBy: there is none if nothing
// limits the request, or if the client left first.
func Decided(d *tidegate.Decision) bool {
	return d.Limit != nil && (d.Err == nil || !errors.Is(d.Err, context.Canceled))
}

// DecidedBy returns the word for who decided: that of the origin, such as local, remembered or rule, or
// store, the name of the store of the counters.
func DecidedBy(o tidegate.Origin, store string) string {
	if o == tidegate.OriginStore {
		return store
	}
	return o.String()
}
