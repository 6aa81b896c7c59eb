package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	domain = "bench"
	keys   = 10_000  // values that are asked about
	draws  = 1 << 12 // of values, made before a heat: choosing them is no part of it
	most   = 20      // descriptors in a call
	scarce = "scarce"
)

// configText has a limit per value for every key that descriptors have, which is not used up in
// a run, and one that is by its second call.
func configText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\ndescriptors:\n", domain)
	for i := range most {
		fmt.Fprintf(&b, "  - key: %s\n    rate_limit: { unit: day, requests_per_unit: 1000000 }\n", entryKey(i))
	}
	fmt.Fprintf(&b, "  - key: %s\n    rate_limit: { unit: day, requests_per_unit: 1 }\n", scarce)
	return b.String()
}

func entryKey(i int) string { return fmt.Sprintf("key%02d", i) }

func descriptor(key, value string) *common.RateLimitDescriptor {
	return &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}}
}

// questions are requests with so many descriptors, about values drawn at random, as they are
// sent: encoding them is no part of a heat.
func questions(descriptors int) ([][]byte, error) {
	all := make([][]byte, 0, draws)
	for range draws {
		r := &pb.RateLimitRequest{Domain: domain}
		for i := range descriptors {
			r.Descriptors = append(r.Descriptors, descriptor(entryKey(i), fmt.Sprintf("user:%05d", rand.IntN(keys))))
		}
		b, err := proto.Marshal(r)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// answer is a response as far as the load generator looks at it.
type answer struct {
	ok       bool
	statuses int
}

// Numbers of the fields of a response.
const (
	fieldOverall  = 1
	fieldStatuses = 2
)

// read takes a response apart, one level deep.
func (a *answer) read(message []byte) error {
	a.ok, a.statuses = false, 0
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if number == fieldOverall && kind == protowire.VarintType {
			code, _ := protowire.ConsumeVarint(message)
			a.ok = code == uint64(pb.RateLimitResponse_OK)
		}
		if number == fieldStatuses {
			a.statuses++
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
	}
	return nil
}
