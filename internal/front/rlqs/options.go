package rlqs

import (
	"log/slog"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/rules/envoy"
)

// DefaultTimes are the times of assignments. Envoy ignores fractions of a second in a time to live.
var DefaultTimes = ledger.Times{TTL: 2 * time.Second, Delivery: 500 * time.Millisecond}

// Options of a Server. Every field may be nil or zero, which has the meaning stated there.
type Options struct {
	// Domains returns the domains in force; nil means that there are none. It returns a new
	// Set after every change.
	Domains func() *envoy.Set
	// Desk knows the native rules, for domains that no file has; nil means that nothing
	// limits them.
	Desk *desk.Desk
	// Store has the counters that a fleet shares: assignments are taken from them ahead. nil
	// means that this process alone divides the limits, and nothing is counted elsewhere.
	Store tidegate.Store
	// Paths says what to do with paths that servers may read in several ways, as in the gateway.
	Paths strict.Paths
	// Times of assignments; the zero value means DefaultTimes.
	Times ledger.Times
	// Successor means that assignments of a predecessor may still be in use. It matters only
	// without a Store.
	Successor bool
	// Shadow means that requests are counted and none is refused.
	Shadow bool

	// Counted is called with n requests that ended like d, as a proxy reports them; nil means
	// that nobody counts them.
	Counted func(d *tidegate.Decision, n int64)
	// Log gets warnings about rules that cannot be divided; nil means no log.
	Log *slog.Logger
}

func (o *Options) complete() {
	if o.Times == (ledger.Times{}) {
		o.Times = DefaultTimes
	}
	if err := o.Times.Check(); err != nil {
		panic("rlqs: New: " + err.Error())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Domains == nil {
		o.Domains = func() *envoy.Set { return nil }
	}
}

// Bounds of what proxies can make a server hold. The clients of a proxy often choose the values of
// bucket ids, so a bucket above a bound is denied and does not end the stream.
const (
	MaxStreams       = 4096
	MaxBuckets       = 4096      // of a stream
	MaxSubscriptions = 64 << 10  // of all streams
	MaxAccounts      = 64 << 10  // counters
	MaxEntries       = 64        // of a bucket id
	MaxID            = 2 << 10   // bytes of a bucket id
	MaxDomain        = 1 << 10   // bytes
	maxReported      = 1_000_000 // requests that one report can count
)

const (
	// silent is how long a bucket is kept without a report. Envoy reports every 5 seconds.
	silent = 20 * time.Second
	// idle is how long a bucket is kept without a request.
	idle = 2 * time.Minute
	// refresh is how often native rules are asked again about a bucket.
	refresh = 5 * time.Second
)
