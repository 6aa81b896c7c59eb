package rls

import (
	"bytes"
	"math"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/question"
	"tidegate.dev/tidegate/rules/envoy"
)

// call is one question of Envoy while it is answered. It is used again.
type call struct {
	domain      string
	hits        uint32
	descriptors []descriptor
	entries     []envoy.Entry // of all descriptors
	keys        []byte        // of all descriptors
	checks      []tidegate.Check

	in      *pb.RateLimitRequest // what it was made of; nil if that was message
	message []byte
	wrong   error // with message
}

// descriptor is one of a call, and what becomes of it.
type descriptor struct {
	entries  []envoy.Entry
	limit    override
	hits     uint64
	hitsSet  bool
	negative bool

	// What it is held to.
	rule     *envoy.Rule // nil means nothing of a file
	replaced bool        // by the rule of another descriptor
	key      string      // in memory of the call
	cost     int64
	question *question.Question // to the native rules; nil unless they are asked
	request  *tidegate.Request  // made of it; nil if they cannot be

	// What was decided.
	asked    bool              // a counter was
	decision tidegate.Decision // about limit; OK if nobody was asked
	err      error             // instead of it
	left     int64             // what remained before hits were charged that were refused
	looked   bool              // what remains was asked after the decision
	over     bool              // it is above its limit, whatever the answer is
	refused  bool              // and the answer says so
	slip     string            // of a refusal by native rules; "" if there is none
}

// override is the limit that a descriptor brings along.
type override struct {
	set      bool
	requests uint32
	unit     int32
}

// read takes over a request, up to what check refuses as too much.
func (c *call) read(in *pb.RateLimitRequest) {
	c.in = in
	c.domain, c.hits = in.GetDomain(), in.GetHitsAddend()
	all := in.GetDescriptors()
	all = all[:min(len(all), MaxDescriptors+1)]
	total := 0
	for _, d := range all {
		total += min(len(d.GetEntries()), MaxEntries+1)
	}
	if cap(c.entries) < total { // parts of it are referred to
		c.entries = make([]envoy.Entry, 0, total)
	}
	for _, d := range all {
		from := len(c.entries)
		entries := d.GetEntries()
		for _, e := range entries[:min(len(entries), MaxEntries+1)] {
			c.entries = append(c.entries, envoy.Entry{Key: e.GetKey(), Value: e.GetValue()})
		}
		own := descriptor{entries: c.entries[from:len(c.entries):len(c.entries)], negative: d.GetIsNegativeHits()}
		if h := d.GetHitsAddend(); h != nil {
			own.hits, own.hitsSet = h.GetValue(), true
		}
		if l := d.GetLimit(); l != nil {
			own.limit = override{true, l.GetRequestsPerUnit(), int32(l.GetUnit())}
		}
		c.descriptors = append(c.descriptors, own)
	}
}

// request is what the call was made of.
func (c *call) request() *pb.RateLimitRequest {
	if c.in == nil {
		c.in = new(pb.RateLimitRequest)
		_ = proto.Unmarshal(c.message, c.in) // which decode has done before
	}
	return c.in
}

// own copies the texts of a call, for those who may keep them.
func (c *call) own() error {
	if c.message == nil {
		return nil
	}
	message := bytes.Clone(c.message)
	c.descriptors, c.entries = c.descriptors[:0], c.entries[:0]
	return c.decode(message)
}

// What a call keeps to be used again.
const (
	keptDescriptors = 64
	keptEntries     = 256
	keptKeys        = 16 << 10
)

// reset forgets everything.
func (c *call) reset() {
	if cap(c.descriptors) > keptDescriptors || cap(c.entries) > keptEntries || cap(c.keys) > keptKeys || cap(c.checks) > keptDescriptors {
		*c = call{}
		return
	}
	clear(c.descriptors)
	clear(c.entries)
	clear(c.checks)
	c.descriptors, c.entries, c.keys, c.checks = c.descriptors[:0], c.entries[:0], c.keys[:0], c.checks[:0]
	c.domain, c.hits, c.in, c.message, c.wrong = "", 0, nil, nil, nil
}

// maxCost is more than any limit can hold.
const maxCost = 1 << 50

// costOf is how many hits a descriptor adds: its own, which may be 0 to look only, or those of
// the call, where nothing means 1.
func (c *call) costOf(d *descriptor) int64 {
	if d.hitsSet {
		return int64(min(d.hits, maxCost))
	}
	return max(1, int64(c.hits))
}

// unitOf is the unit that a descriptor's limit names.
func (o *override) unitOf() envoy.Unit {
	if o.unit < 0 || o.unit > math.MaxUint8 {
		return envoy.NoUnit
	}
	return envoy.Unit(o.unit)
}
