package tidegate

import "time"

// Terms are what a rule says about a limit beyond its numbers. They are not part of the limit's
// identity, except that Split and Eventual limits have counters of their own; stores read nothing of
// them but Handling.Successor. Front ends read Answer, a Gate acts on MaxOver and AtEnd, and the
// layers between a Gate and its store read only Handling.
type Terms struct {
	// Rule is the name of the rule that the limit belongs to.
	Rule string
	// Role is what the limit is for within its rule.
	Role Role
	// Elastic, for limits that are [Marks]: what is above this limit passes only while a signal
	// says that there is room.
	Elastic bool
	// MaxOver, when not 0: from the first request above this limit, which Decides, requests may
	// pass above it for this long (the grace): a Gate then treats the limit as one that Marks.
	// Other limits of the request, such as a higher one, still decide. After the grace the limit
	// decides again; the next grace may begin when it has had room for as long. MaxOver is from
	// MinMaxOver to MaxMaxOver, for limits over a week at most, and not for a LeakyBucket or
	// Concurrency.
	MaxOver time.Duration
	// Answer is how front ends answer a refusal, and what they tell clients about the limit.
	Answer Answer
	// AtEnd is what becomes of a charge when the request has ended, or was refused.
	AtEnd AtEnd
	// Handling is how the limit is asked about, and what happens when it cannot be.
	Handling Handling
}

// AtEnd is what becomes of a charge when the request has ended, or was refused. With the
// zero value it stays as it is.
type AtEnd struct {
	// Counts, when not empty: only requests answered with one of these statuses
	// stay charged; see [Visit.End]. While a request is in flight, its charge counts.
	Counts []StatusRange
	// Settle is where the true cost is found at the end of a request whose cost
	// was an estimate: "response.header.NAME" or "response.body.FIELD".
	Settle string
	// Block, when not nil: once this limit has refused a key, Block refuses it
	// for its Period. A Gate charges one event to it, under the same key, when a
	// refusal is about this limit; the Matcher adds a check of it with a cost of 0
	// to every request. Charges of requests in flight do not start a Block: settled
	// ones alone must use up the limit, see [Limit.Settled]. Slots of a Concurrency
	// limit are always in flight, and never start one.
	Block *Limit
}

// Handling is how a limit is decided. It is all that the layers between a Gate and its
// store know of a rule. The zero value changes nothing.
type Handling struct {
	// OnStoreFailure, unless it is FailDefault, decides when the store cannot answer, in place of the
	// mode of the Gate and that of the store of package fleet. A Limiter has only its own.
	OnStoreFailure FailMode
	// Queue, when not nil: a refused request may wait in a queue, if the front end
	// can hold it. Buckets are booked ahead instead, by Check.MaxWait.
	Queue *Queue
	// Defer, when not nil: a refused request may be kept and sent later, if the front end can
	// do that.
	Defer *Defer
	// Successor is set on a limit from before a change of the rules: it is the limit of the same
	// request that has taken its place. A request that this limit refuses waits in the queue of
	// the Successor. If both are token buckets, or both leaky ones, an admission leaves at least
	// as many events of the Successor used as of this limit, or all of them.
	Successor *Limit
	// Final: what is taken is never given back, as with a Block. So a refusal stands until its
	// RetryAfter, also for a check with a cost of 0.
	Final bool
	// Consistency is how a fleet shares the limit's counters.
	Consistency Consistency
	// OnPartition is whether regions share the limit, and what a region does while it is cut off.
	OnPartition OnPartition
	// NoDenyCache: the store that a fleet shares is asked about every request, even if
	// the node knows from a refusal that there is no room yet.
	NoDenyCache bool
	// NoCoalesce: that store is asked about each request in a call of its own, not
	// together with others for the same checks.
	NoCoalesce bool
}

// Role is what a limit is for within its rule.
type Role uint8

const (
	// Decides: the limit proper.
	Decides Role = iota
	// Marks: the nominal limit below a soft or elastic ceiling. A request that
	// it has no room for is admitted, and Decision.Soft.
	Marks
	// Tries: a shadow rule or a candidate limit, which is only counted.
	Tries
	// Blocks: refuses a key for a while after a refusal.
	Blocks
	// Sheds: an access rule that refuses requests while there is not the capacity for all of
	// them. Unlike with other access rules, the client may try again, after Answer.RetryAfter.
	Sheds
)

// Queue describes the queue in which requests wait for their turn.
type Queue struct {
	// Places is how many requests of one key may wait.
	Places int64
	// MaxWait is how long a request waits at most.
	MaxWait time.Duration
	// DropOldest: when the queue is full, the request that has waited longest in this process
	// is refused instead of the new one.
	DropOldest bool
}

// Defer says how requests that a limit has refused are kept.
type Defer struct {
	// Keep is how long a request is kept at most; 0 with a Stream.
	Keep time.Duration
	// Places of all keys of the rule together; 0 with a Stream means any number.
	Places int64
	// PerKey is how many of them one key may take; 0 with a Stream.
	PerKey int64
	// MaxBody is how many bytes the body of a request may have.
	MaxBody int64
	// Stream of Redis to which requests are appended, for other programs to process; "" means
	// that they are sent later.
	Stream string
}

// StatusRange stands for the HTTP statuses from From to To, both included.
type StatusRange struct{ From, To int }

// Answer is how a refusal is answered. The zero value leaves everything to the
// front end.
type Answer struct {
	// Status to answer with; 0 means the front end's own: 429, or 403 for Deny.
	Status int
	// Unidentified: the request is refused because it lacks an identity that the rule counts
	// by. It is UNAUTHENTICATED in gRPC, whatever the Status.
	Unidentified bool
	// Message is the sentence that tells the client why.
	Message string
	// Body instead of a problem+json one, as ContentType. {rule}, {limit},
	// {remaining} and {retry_after} in it are replaced; nothing else is.
	Body, ContentType string
	// Dialects of the headers, all of which are sent: "draft11", "draft6", "x", or
	// "none" alone; no dialects means the front end's.
	Dialects []string
	// Reset in the headers, "delta" or "epoch"; "" is the front end's.
	Reset string
	// RetryJitter spreads the Retry-After that front ends write for a FixedWindow or a
	// Quota over this share of the window, 0.1 being a tenth; 0 is the front end's,
	// negative means none. The Decision stays exact.
	RetryJitter float64
	// RetryAfter is, for a limit that Sheds, after how long a request may be admitted at the
	// earliest.
	RetryAfter time.Duration
	// Nominal is, for a limit that is a ceiling or a block, the limit that clients are told
	// about instead.
	Nominal *Limit
}
