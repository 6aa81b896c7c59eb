package rlqs

import (
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/memory"
)

// FuzzReports: no messages panic. Each is an error of the proxy, or every bucket of it is told
// something that Envoy takes.
func FuzzReports(f *testing.F) {
	native, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: descriptor }\nrules:\n  - { name: r, match: /, per: [user, ip], limits: { rate: 3/hour, algorithm: token_bucket } }\n"), rules.Config{})
	if err != nil {
		f.Fatal(err)
	}
	store := memory.New()
	set := load(f, kinds)
	s := New(Options{Times: short, Domains: func() *envoy.Set { return set }, Desk: desk.New(tidegate.NewGate(rules.NewLive(native), store))})
	defer s.Close()
	for _, in := range []*pb.RateLimitQuotaUsageReports{
		{Domain: "shop", BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{
			{BucketId: &pb.BucketId{Bucket: id("bucket=x")}, TimeElapsed: durationpb.New(time.Second), NumRequestsAllowed: 5, NumRequestsDenied: 1 << 63},
			{BucketId: &pb.BucketId{Bucket: id("tenant=a, path=/")}},
		}},
		{Domain: "other", BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{{BucketId: &pb.BucketId{Bucket: id("path=/x, user=ann, remote_address=192.0.2.1, method=GET, host=h")}}}},
		{},
	} {
		text, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		st := openStream(t, s)
		defer s.end(st)
		for _, text := range [][]byte{first, second} {
			in := new(pb.RateLimitQuotaUsageReports)
			if proto.Unmarshal(text, in) != nil {
				continue
			}
			if err := s.reported(t.Context(), st, in); err != nil {
				if status.Code(err) != codes.InvalidArgument {
					t.Fatalf("%v: %v", in, err)
				}
				return
			}
			names := make(map[string]bool)
			for _, u := range in.BucketQuotaUsages {
				_, name, _ := entriesOf(u.GetBucketId().GetBucket())
				names[name] = true
			}
			st.outbox.mu.Lock()
			for name := range names {
				u, ok := st.outbox.updates[name]
				if !ok {
					t.Errorf("%v: %q is told nothing", in, name)
					continue
				}
				wordOf(t, u.action, short.TTL)
			}
			st.outbox.mu.Unlock()
		}
	})
}
