package rls_test

import (
	"context"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/rls"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// FuzzMessage: no message panics, and each has an answer that fits it or an error of the caller.
func FuzzMessage(f *testing.F) {
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: descriptor }\nrules:\n  - { name: r, match: /, per: [user, ip], limits: 3/hour }\n"), rules.Config{})
	if err != nil {
		f.Fatal(err)
	}
	store := memory.New()
	s := rls.New(rls.Options{
		Domains: domains(f, read(f, "testdata/demo.yaml")), Store: store, Near: store, Metadata: rls.MetadataOfRequest,
		Headers: rls.Headers{Limit: "L", Remaining: "R", Reset: "S"},
		Desk:    desk.New(tidegate.NewGate(rules.NewLive(set), store)),
	})
	defer s.Close()
	for _, r := range []*pb.RateLimitRequest{
		request("rl", "foo=pelle, baz=shady"),
		request("rl", "service=service_1", "service=service_2", "foo=ann, bar=banned hits 0"),
		request("other", "path=/x, method=GET, host=h, remote_address=192.0.2.1, user=ann"),
		request("rl", "foo=x back 7"),
		{},
	} {
		text, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := new(pb.RateLimitRequest)
		if proto.Unmarshal(text, in) != nil {
			return
		}
		out, err := s.ShouldRateLimit(context.Background(), in)
		switch {
		case err != nil && status.Code(err) != codes.InvalidArgument:
			t.Fatalf("%v: %v", in, err)
		case err != nil:
		case len(out.Statuses) != len(in.Descriptors):
			t.Fatalf("%d statuses for %v", len(out.Statuses), in)
		default:
			if _, err := proto.Marshal(out); err != nil {
				t.Fatalf("%v: %v", out, err)
			}
		}
	})
}
