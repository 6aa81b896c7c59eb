package rls

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// randomRequest has every field, or not, within the bounds of a call.
func randomRequest(r *rand.Rand) *pb.RateLimitRequest {
	word := func() string {
		return []string{"", "a", "user", "ключ", strings.Repeat("x", r.IntN(300))}[r.IntN(5)]
	}
	number := func() uint64 { return []uint64{0, 1, 127, 128, math.MaxUint32, math.MaxUint64}[r.IntN(6)] }
	in := &pb.RateLimitRequest{Domain: word(), HitsAddend: uint32(number())}
	for range r.IntN(25) {
		d := &common.RateLimitDescriptor{IsNegativeHits: r.IntN(4) == 0}
		for range r.IntN(5) {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: word(), Value: word()})
		}
		if r.IntN(3) == 0 {
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(number()), Unit: typev3.RateLimitUnit(r.IntN(12) - 2)}
			if r.IntN(2) == 0 {
				d.Limit.UnitMultiplier = wrapperspb.UInt32(uint32(number()))
			}
		}
		if r.IntN(3) == 0 {
			d.HitsAddend = wrapperspb.UInt64(number())
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// sameCall compares what two ways of reading found.
func sameCall(t *testing.T, got, want *call) {
	t.Helper()
	if got.domain != want.domain || got.hits != want.hits || len(got.descriptors) != len(want.descriptors) {
		t.Fatalf("got  %q, %d hits, %d descriptors\nwant %q, %d hits, %d descriptors",
			got.domain, got.hits, len(got.descriptors), want.domain, want.hits, len(want.descriptors))
	}
	for i := range got.descriptors {
		a, b := &got.descriptors[i], &want.descriptors[i]
		entries := len(a.entries) == 0 && len(b.entries) == 0 || reflect.DeepEqual(a.entries, b.entries)
		if !entries || a.limit != b.limit || a.hits != b.hits || a.hitsSet != b.hitsSet || a.negative != b.negative {
			t.Fatalf("descriptor %d:\ngot  %+v\nwant %+v", i, a, b)
		}
	}
}

// decode finds what protobuf's own decoder finds, also in memory that was used before, and in
// messages that were joined, whose parts protobuf merges.
func TestDecodeLikeProtobuf(t *testing.T) {
	testdep.SkipUnderRace(t)
	r := rand.New(rand.NewPCG(1, 2))
	var c call
	for i := range 2000 {
		message, err := proto.Marshal(randomRequest(r))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			more, err := proto.Marshal(randomRequest(r))
			if err != nil {
				t.Fatal(err)
			}
			message = append(message, more...)
		}
		var in pb.RateLimitRequest
		if err := proto.Unmarshal(message, &in); err != nil {
			t.Fatal(err)
		}
		var want call
		want.read(&in)
		if err := c.decode(message); err != nil {
			t.Fatal(err)
		}
		sameCall(t, &c, &want)
		if !proto.Equal(c.request(), &in) {
			t.Fatalf("got %v, want %v", c.request(), &in)
		}
		c.reset()
	}
}

// A descriptor may come in parts of a singular field, of which each adds to the one before.
func TestDecodeMerges(t *testing.T) {
	limit := func(requests, unit uint64) (b []byte) {
		if requests > 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, limitRequests, protowire.VarintType), requests)
		}
		if unit > 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, limitUnit, protowire.VarintType), unit)
		}
		return b
	}
	var d []byte
	for _, part := range [][]byte{limit(7, 0), limit(0, 2), nil} {
		d = protowire.AppendBytes(protowire.AppendTag(d, descriptorLimit, protowire.BytesType), part)
	}
	message := protowire.AppendBytes(protowire.AppendTag(nil, requestDescriptors, protowire.BytesType), d)
	var in pb.RateLimitRequest
	if err := proto.Unmarshal(message, &in); err != nil {
		t.Fatal(err)
	}
	var got, want call
	want.read(&in)
	if err := got.decode(message); err != nil || got.descriptors[0].limit != (override{true, 7, 2}) {
		t.Fatalf("%+v, %v", got.descriptors, err)
	}
	sameCall(t, &got, &want)
}

// A small message cannot make many objects: what is beyond the bounds is not kept.
func TestDecodeIsBounded(t *testing.T) {
	f := func(name string, message []byte, fine bool) {
		t.Helper()
		var c call
		if err := c.decode(message); (err == nil) != fine {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.descriptors) > MaxDescriptors || len(c.entries) > MaxDescriptors*MaxEntries {
			t.Errorf("%s: %d descriptors, %d entries", name, len(c.descriptors), len(c.entries))
		}
	}
	empty := []byte{requestDescriptors<<3 | 2, 0}
	repeat := func(b []byte, n int) []byte { return []byte(strings.Repeat(string(b), n)) }
	f("as many descriptors as may be", repeat(empty, MaxDescriptors), true)
	f("one more", repeat(empty, MaxDescriptors+1), false)
	f("a message of them", repeat(empty, MaxMessage/2), false)
	entries := func(n int) []byte {
		return protowire.AppendBytes([]byte{requestDescriptors<<3 | 2}, repeat([]byte{descriptorEntries<<3 | 2, 0}, n))
	}
	f("as many entries as may be", repeat(entries(MaxEntries), 3), true)
	f("one more", entries(MaxEntries+1), false)
}

// A request that is at hand as an object, as those in JSON are, is held to the same bounds.
func TestReadIsBounded(t *testing.T) {
	f := func(name string, descriptors, entries int, fine bool) {
		t.Helper()
		in := &pb.RateLimitRequest{Domain: "d"}
		one := new(common.RateLimitDescriptor)
		for range entries {
			one.Entries = append(one.Entries, &common.RateLimitDescriptor_Entry{Key: "k"})
		}
		for range descriptors {
			in.Descriptors = append(in.Descriptors, one)
		}
		var c call
		c.read(in)
		if err := c.check(); (err == nil) != fine {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.descriptors) > MaxDescriptors+1 || len(c.entries) > (MaxDescriptors+1)*(MaxEntries+1) {
			t.Errorf("%s: %d descriptors, %d entries", name, len(c.descriptors), len(c.entries))
		}
	}
	f("as much as may be", MaxDescriptors, MaxEntries, true)
	f("a descriptor more", MaxDescriptors+1, 1, false)
	f("an entry more", 1, MaxEntries+1, false)
	f("many descriptors", MaxMessage/3, 1, false)
	f("many entries", 3, MaxMessage/3, false)
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	in := &pb.RateLimitRequest{Domain: "shop"}
	for i := range 20 {
		in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: fmt.Sprint("key", i), Value: "value"}}})
	}
	message, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var c call
	if n := testing.AllocsPerRun(100, func() {
		if err := c.decode(message); err != nil {
			t.Fatal(err)
		}
		c.reset()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever protobuf reads, decode reads alike; whatever it refuses, decode refuses.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		message, err := proto.Marshal(randomRequest(r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var in pb.RateLimitRequest
		theirs := proto.Unmarshal(message, &in)
		var got, want call
		ours := got.decode(message)
		if theirs != nil {
			if ours == nil {
				t.Fatalf("protobuf refuses it: %v", theirs)
			}
			return
		}
		beyond := len(in.Descriptors) > MaxDescriptors
		for _, d := range in.Descriptors {
			beyond = beyond || len(d.Entries) > MaxEntries
		}
		if (ours != nil) != beyond {
			t.Fatalf("%v, want an error: %t", ours, beyond)
		}
		if ours == nil {
			want.read(&in)
			sameCall(t, &got, &want)
		}
	})
}
