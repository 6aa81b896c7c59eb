package rls

import (
	"cmp"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/rules/envoy"
)

// DefaultDeadline is how long a call may take. Envoy's filter gives up after 20 ms, and the answer
// has to travel.
const DefaultDeadline = 15 * time.Millisecond

// Options of a Server. Store is required; every other field may be nil or zero, which has the
// meaning stated there.
type Options struct {
	// Domains returns the domains in force; nil means that there are none.
	Domains func() *envoy.Set
	// Desk answers descriptors of domains that no file has, by the native rules; nil means
	// that nothing limits them.
	Desk *desk.Desk
	// Store keeps the counters. Far means that asking it takes a round trip: the counters of a
	// call are then asked at the same time.
	Store tidegate.Store
	Far   bool
	// Near is a shorter way to counters in this process, for limits that no layer before them
	// handles; nil means that there is none.
	Near tidegate.OneTaker
	// Paths says what to do with paths that servers may read in several ways, as in the gateway.
	Paths strict.Paths

	// Deadline is how long a call may take if the Store is Far; then a fallback of the Store
	// answers it. 0 means DefaultDeadline.
	Deadline time.Duration
	// MaxConnectionAge is how old a connection gets before its client is told to connect again,
	// so that a new instance gets its share; 0 means a day, negative never.
	MaxConnectionAge time.Duration
	// Headers are the response headers to add; the zero value adds none.
	Headers Headers
	// Shadow: calls are counted, and none is refused.
	Shadow bool
	// Metadata says what dynamic metadata answers have.
	Metadata Metadata

	// Counted is called for n decisions in a row that ended like d; nil means that nobody counts
	// them.
	Counted func(d *tidegate.Decision, n int64)
	// Shadowed is called for a descriptor whose rule is in shadow mode; over means that it would
	// have been refused. nil means that nobody is told.
	Shadowed func(limit *tidegate.Limit, over bool)
	// Stats counts hits by the metric keys of envoyproxy/ratelimit; nil counts none.
	Stats Stats
	// Answered is called for a call to which rules of files apply, with the decision about the
	// descriptor that refuses, or else is closest to that, and its key. Descriptors that only
	// shadow mode admits do not count. It must keep neither. nil means that nobody is told.
	Answered func(key string, d *tidegate.Decision)
	// Slip returns the slip of a refusal by a rule of a file; checks has the one that refuses. It
	// must not keep them. nil means that such refusals have none. Those by native rules have
	// the slips of Desk.
	Slip func(checks []tidegate.Check, d *tidegate.Decision) string
	// Each is called for every descriptor about which a rule of a file has decided, whatever
	// becomes of its call, with the key of its counter. shadow means that the rule, or the Server,
	// only counts and refuses nobody. It must keep neither key nor d. nil means that nobody is told.
	Each func(key string, d *tidegate.Decision, shadow bool)
	// Register adds other services to the gRPC server, which bound the number of their streams
	// themselves; nil adds none.
	Register func(grpc.ServiceRegistrar)
	// Compare puts the same calls to another service; nil means that there is none.
	Compare *Compare
	// Log gets what should not happen; nil means no log.
	Log *slog.Logger
}

// Headers are the names of response headers about the descriptor that is closest to its limit; "" adds
// none.
type Headers struct{ Limit, Remaining, Reset string }

// any reports whether there are headers to add.
func (h *Headers) any() bool { return *h != Headers{} }

// Metadata is what dynamic metadata has.
type Metadata uint8

const (
	// MetadataOfRules: what the rules that admitted say as `metadata`, if one does.
	MetadataOfRules Metadata = iota
	// MetadataOfRequest: also the domain, the descriptors and the hits.
	MetadataOfRequest
	// NoMetadata: none.
	NoMetadata
)

// Stats counts hits by metric key.
type Stats interface {
	// Hits counts the hits of one descriptor. key is its metric key.
	Hits(domain, key string, h Hits)
	// UnknownDomain counts a call whose domain no file has.
	UnknownDomain()
	// Answered counts a call, and how long it took; also one that has failed.
	Answered(took time.Duration)
	// Failed counts a call that was answered by an error.
	Failed()
}

// Hits says what became of the hits of one descriptor, as the metrics of envoyproxy/ratelimit do: Near
// are those near the limit, Remembered those over it by a refusal that was remembered, and Shadow
// those over it that shadow mode admits.
type Hits struct {
	Total, Over, Near, Within, Remembered, Shadow uint64
}

func (o *Options) complete() {
	if o.Store == nil {
		panic("rls: New: the store is nil")
	}
	o.Deadline = cmp.Or(o.Deadline, DefaultDeadline)
	o.MaxConnectionAge = cmp.Or(o.MaxConnectionAge, 24*time.Hour)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Domains == nil {
		o.Domains = func() *envoy.Set { return nil }
	}
}
