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

// DefaultDeadline is by when a call is answered. Envoy's filter gives up after 20 ms, and the
// answer has to travel.
const DefaultDeadline = 15 * time.Millisecond

// Options of a Server. Store is needed; what is nil or zero has the default that is said.
type Options struct {
	// Domains returns the domains in force; nil means that there are none.
	Domains func() *envoy.Set
	// Desk answers descriptors of domains that no file has, by the native rules; nil means
	// that nothing limits them.
	Desk *desk.Desk
	// Store keeps the counters. If Far, a question takes a round trip, and those of a call
	// are asked at the same time.
	Store tidegate.Store
	Far   bool
	// Near, if the counters are in this process, is a shorter way to those of limits that no
	// layer has to see; nil means that there is none.
	Near tidegate.OneTaker
	// Paths is what the gateway lets pass of paths that can be read in several ways.
	Paths strict.Paths

	// Deadline is by when a call is answered, by a fallback of the Store if it must be; 0
	// means DefaultDeadline.
	Deadline time.Duration
	// MaxConnectionAge is after how long a client is told to connect again, so that a new
	// instance gets its share; 0 means a day, negative never.
	MaxConnectionAge time.Duration
	// Headers are the response headers to add; the zero value adds none.
	Headers Headers
	// Shadow: calls are counted, and none is refused.
	Shadow bool
	// Metadata says what dynamic metadata there is.
	Metadata Metadata

	// Counted is told of n decisions in a row that ended like d; nil means nobody is.
	Counted func(d *tidegate.Decision, n int64)
	// Shadowed is told of a descriptor whose rule is in shadow mode: over means that it would
	// have been refused.
	Shadowed func(limit *tidegate.Limit, over bool)
	// Stats counts hits by the metric keys of envoyproxy/ratelimit; nil counts none.
	Stats Stats
	// Answered is told of every call that rules of files apply to, by the descriptor that refuses
	// or is closest to it, and its key; it must keep neither. nil means nobody is.
	Answered func(key string, d *tidegate.Decision)
	// Slip returns the slip of a refusal by a rule of a file, which has the checks of one counter; it
	// must not keep them. nil means that such refusals have none. Those by native rules have
	// the slips of Desk.
	Slip func(checks []tidegate.Check, d *tidegate.Decision) string
	// Each is told of every descriptor that a counter was asked about, whatever others of its call
	// say: by its key, and whether its rule only counts and refuses nobody. It must keep neither
	// key nor d. nil means nobody is.
	Each func(key string, d *tidegate.Decision, shadow bool)
	// Register adds services to the server that are beside this one, and bound themselves how
	// many streams they have; nil adds none.
	Register func(grpc.ServiceRegistrar)
	// Compare asks another service the same; nil asks nobody.
	Compare *Compare
	// Log is told what should not happen; nil means nobody is.
	Log *slog.Logger
}

// Headers are the names of response headers about the descriptor that is closest to its limit.
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
	// Hits is told of the hits of one descriptor.
	Hits(domain, key string, h Hits)
	// UnknownDomain is told of a call whose domain no file has.
	UnknownDomain()
	// Answered is told of a call, and how long it took.
	Answered(took time.Duration)
	// Failed is told of a call that was answered by an error.
	Failed()
}

// Hits is what became of the hits of one descriptor.
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
