package redis

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
	"unique"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// kind is a law, by the number it has in scripts.
type kind uint8

const (
	buckets kind = 1 + iota
	counters
	slidings
	parts
	logs
	leases

	kinds = iota
)

func (k kind) file() string {
	return [...]string{"", "bucket", "counter", "sliding", "parts", "log", "leases"}[k]
}

// kindSet has a bit for each kind.
type kindSet uint8

func (s kindSet) has(k kind) bool { return s&(1<<(k-1)) != 0 }
func (s *kindSet) add(k kind)     { *s |= 1 << (k - 1) }

var kindOf = map[tidegate.Algorithm]kind{
	tidegate.TokenBucket:   buckets,
	tidegate.LeakyBucket:   buckets,
	tidegate.FixedWindow:   counters,
	tidegate.Quota:         counters,
	tidegate.SlidingWindow: slidings,
	tidegate.SubWindows:    parts,
	tidegate.SlidingLog:    logs,
	tidegate.Concurrency:   leases,
}

// compiledLimit is a limit with everything about it that can be computed in advance.
type compiledLimit struct {
	limit     *tidegate.Limit
	identity  unique.Handle[string] // limits of one identity, tiers of a rule, share counters
	kind      kind
	capacity  int64
	id        string // of its state among others of its key
	packedLaw string // the numbers of its law that never change, as scripts read them
	bucket    algo.BucketLaw
	variant   byte   // of a bucket: 0, 1 if it is leaky, or rawTime
	longest   int64  // ticks that a bucket can be booked ahead, at most
	start     string // of its keys, up to the brace
	end       string // of its keys, from the brace on
	dates     atomic.Pointer[dates]
	successor *tidegate.Limit // that follows this bucket; nil if none does

	// See runs.go. parts is how many parts it counts in. asParts is set for a log whose
	// counters were last found in parts: the limit that reads them. Its log is this limit.
	parts   int64
	asParts atomic.Pointer[compiledLimit]
	log     *compiledLimit
}

// rawTime tells scripts that a bucket converts nothing.
const rawTime = 2

// maxCompiled is how many compiled limits are kept; a caller that makes a new Limit per
// request gets slower, not larger.
const maxCompiled = 1 << 16

// compile returns the compiled limit, which is made at the first call. It returns an error for an access
// rule, and for a Limit that NewLimit has not made.
func (s *Store) compile(l *tidegate.Limit) (*compiledLimit, error) {
	if b, ok := s.compiled.Load(l); ok {
		return b.(*compiledLimit), nil
	}
	if l == nil || l.Identity() == "" {
		return nil, fmt.Errorf("redis: a check has no limit made by tidegate.NewLimit")
	}
	if l.Algorithm == tidegate.Deny {
		return nil, fmt.Errorf("redis: %s is an access rule, which no store counts; put the request to a tidegate.Gate", l)
	}
	lim := newCompiledLimit(s.prefix, l)
	if s.compiledCount.Add(1) > maxCompiled {
		s.compiled.Clear()
		s.compiledCount.Store(1)
	}
	s.compiled.Store(l, lim)
	return lim, nil
}

// maxAhead bounds how far ahead of its burst a token bucket can be booked, as in
// internal/algo.
const maxAhead = time.Hour

func newCompiledLimit(prefix string, l *tidegate.Limit) *compiledLimit {
	lim := &compiledLimit{limit: l, identity: unique.Make(l.Identity()), kind: kindOf[l.Algorithm], capacity: l.Capacity(), id: stateID(l), end: "}"}
	lim.start = prefix + ":" + escape(l.Name) + ":{"
	period := l.Period.Microseconds()
	var p packer
	switch lim.kind {
	case buckets:
		lim.bucket, lim.successor = algo.NewBucketLaw(l), algo.Successor(l)
		lim.longest = algo.Ticks(maxAhead)
		if lim.bucket.Leaky { // nobody has to wait for longer than the whole queue takes
			lim.longest, lim.variant = lim.bucket.Tau, 1
		} else if lim.bucket.Raw {
			lim.variant = rawTime
		}
		p.int(lim.bucket.Em)
		p.int(lim.bucket.Cap)
	case counters:
		p.int(l.Events)
		p.int(period)
	case slidings:
		law := algo.NewSlidingLaw(l)
		shift, window := law.Unit()
		p.int(l.Events)
		p.int(period)
		p.int(1 << shift)
		p.int(window)
	case parts:
		law := algo.NewPartsLaw(l)
		lim.parts = law.Parts
		shift, window := law.Unit()
		p.int(l.Events)
		p.int(law.Parts)
		p.int(law.Part)
		p.int(1 << shift)
		p.int(window)
		p.byte(flag(l.Ceiling))
	case logs:
		lim.end = "}:log:" + l.Period.String()
		p.int(l.Events)
		p.int(period)
		p.byte(flag(l.CountRejected))
	case leases:
		lim.end = "}:slots:" + l.Period.String()
		p.int(l.Events)
		p.int(period)
	}
	lim.packedLaw = string(p)
	return lim
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// stateID tells the states under one key apart: 9 bytes made of what a limit's identity
// has besides name and scope.
func stateID(l *tidegate.Limit) string {
	id := make([]byte, 9)
	if l.Algorithm == tidegate.Quota {
		zone := sha256.Sum256([]byte(l.Zone))
		copy(id[1:], zone[:])
		id[1] = byte(l.Calendar)<<5 | byte(l.Anchor)
	} else if !l.RawTime { // of which a key has one, whatever the period
		binary.BigEndian.PutUint64(id[1:], uint64(l.Period.Microseconds())<<10|uint64(l.Parts))
	}
	id[0] = byte(l.Algorithm)
	return string(id)
}

// law appends the numbers of lim to p. wait is in ticks.
func (lim *compiledLimit) law(p *packer, wait int64, dates []int64, altKey uint16) {
	p.text(lim.packedLaw)
	switch lim.kind {
	case buckets:
		p.byte(lim.variant)
		p.ticks(min(wait, lim.longest))
	case counters:
		p.byte(byte(len(dates)))
		for _, us := range dates {
			p.int(us)
		}
	case logs:
		p.uint16(altKey)
	case parts:
		p.uint16(altKey)
		p.byte(flag(lim.log != nil))
	}
}
