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

// call is a call of Envoy while it is answered. Its memory is used again.
type call struct {
	domain      string
	hits        uint32
	descriptors []descriptor
	entries     []envoy.Entry // of all descriptors
	keys        []byte        // of all descriptors
	checks      []tidegate.Check

	in      *pb.RateLimitRequest // what the call was read from; nil if from message
	message []byte
	wrong   error // what decode has found wrong with message
}

// descriptor is one of a call, and what becomes of it.
type descriptor struct {
	entries  []envoy.Entry
	limit    override
	hits     uint64
	hitsSet  bool
	negative bool

	// What it is held to.
	rule     *envoy.Rule // nil means no rule of a file
	replaced bool        // by the rule of another descriptor
	key      string      // in memory of the call
	cost     int64
	question *question.Question // to the native rules; nil unless they are asked
	request  *tidegate.Request  // made of question; nil if no rule can match that

	// What was decided.
	asked    bool              // a rule has decided about it
	decision tidegate.Decision // OK if no rule has decided
	err      error             // why the store has not decided
	left     int64             // what remained before refused hits were charged
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

// read makes c of a request. It takes at most one descriptor, and one entry of each, more than check
// allows.
func (c *call) read(in *pb.RateLimitRequest) {
	c.in = in
	c.domain, c.hits = in.GetDomain(), in.GetHitsAddend()
	all := in.GetDescriptors()
	all = all[:min(len(all), MaxDescriptors+1)]
	total := 0
	for _, d := range all {
		total += min(len(d.GetEntries()), MaxEntries+1)
	}
	if cap(c.entries) < total { // it must not move: descriptors refer to parts of it
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

// request returns the message that the call was made of.
func (c *call) request() *pb.RateLimitRequest {
	if c.in == nil {
		c.in = new(pb.RateLimitRequest)
		_ = proto.Unmarshal(c.message, c.in) // which decode has done before
	}
	return c.in
}

// own makes the texts of a call refer to a copy of its message, for callees that may keep them.
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

// costOf returns how many hits a descriptor adds: its own number, of which 0 only looks, or else
// that of the call, of which 0 means 1.
func (c *call) costOf(d *descriptor) int64 {
	if d.hitsSet {
		return int64(min(d.hits, maxCost))
	}
	return max(1, int64(c.hits))
}

// unitOf returns the unit that a descriptor's limit names.
func (o *override) unitOf() envoy.Unit {
	if o.unit < 0 || o.unit > math.MaxUint8 {
		return envoy.NoUnit
	}
	return envoy.Unit(o.unit)
}
