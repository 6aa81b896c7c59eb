package rls_test

import (
	"os"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What envoyproxy/ratelimit answers to a demo of everything: names that replace others, a ban,
// shadow and quota mode.
func TestRequestTable(t *testing.T) {
	f := func(want string, n int, descriptors ...string) func(*service) {
		return func(s *service) {
			s.Helper()
			if got := s.codes(n, "rl", descriptors...); got != want {
				s.Errorf("%d x %q: %s, want %s", n, descriptors, got, want)
			}
		}
	}
	run := func(name string, steps ...func(*service)) {
		t.Run(name, func(t *testing.T) {
			s := serve(t, inMemory(t, read(t, "testdata/demo.yaml")))
			for _, step := range steps {
				step(s)
			}
		})
	}
	run("value", f("OK OK OK OVER", 4, "foo=pelle, baz=not-so-shady"))
	run("shadow", f("OK OK OK OK OK", 5, "foo=pelle, baz=shady"), func(s *service) {
		s.want("OK | OK 0 of 3/minute", "rl", "foo=pelle, baz=shady")
	})
	run("ban", f("OVER", 1, "foo=ann, bar=banned"))
	run("ban not replaced", f("OVER", 1, "foo=ann, bar=banned", "source_cluster=proxy, destination_cluster=mock"))
	run("ban replaced", f("OK OK OVER", 3, "foo=ann, bar=banned", "source_cluster=proxy, destination_cluster=override"))
	run("replaced counter is untouched",
		f("OK OK OVER", 3, "foo=my_foo, bar=ann", "source_cluster=proxy, destination_cluster=ann"),
		f("OK OVER", 2, "foo=my_foo, bar=ann", "source_cluster=proxy, destination_cluster=other"))
	run("one replaces two", f("OK OK OK OK OVER", 5, "foo=my_foo, bar=ann", "source_cluster=proxy, destination_cluster=fake", "category=account"))
	run("detailed metric", f("OK OK OVER", 3, "unspec=unspecified_value"))
	run("quota", f("OK OK OVER", 3, "service=service_1", "service=service_2"))
	run("unlimited", func(s *service) {
		s.want("OK | OK 4294967295", "rl", "qux=anything")
		s.want("OK | OK 4294967295", "rl", "foo=x, bay=y")
	})
	run("nothing", func(s *service) {
		s.want("OK | OK 0", "rl", "nobody=knows")
		s.want("OK | OK 0", "rl", "foo=x, bar=y, deeper=z")
		s.want("OK | OK 0", "other", "foo=x")
	})
}

// The metadata of the first quota with room is told.
func TestQuotaMetadata(t *testing.T) {
	s := serve(t, inMemory(t, read(t, "testdata/demo.yaml")))
	for _, want := range []string{"service_1", "service_2", ""} {
		out := s.ask(request("rl", "service=service_1", "service=service_2"))
		if got := out.GetDynamicMetadata().GetFields()["metadata"].GetStructValue().GetFields()["service_with_quota"].GetStructValue().GetFields()["name"].GetStringValue(); got != want {
			t.Errorf("the metadata is of %q, want %q: %v", got, want, out.DynamicMetadata)
		}
	}
	out := s.ask(request("rl", "service=service_1", "service=service_2"))
	for _, st := range out.Statuses {
		if st.Code != pb.RateLimitResponse_OVER_LIMIT {
			t.Errorf("status %v", st)
		}
	}
}

// A table of what matches, by depth and value.
func TestMatchTable(t *testing.T) {
	s := serve(t, inMemory(t, read(t, "testdata/match.yaml")))
	f := func(want, descriptor string) {
		t.Helper()
		s.want("OK | OK "+want, "test-domain", descriptor)
	}
	f("0", "key1=something")
	f("0", "key1=value1")
	f("0", "key2=value2, subkey=subvalue")
	f("0", "key5=value5, subkey5=subvalue")
	f("4 of 5/second", "key1=value1, subkey1=something")
	f("9 of 10/second", "key1=value1, subkey1=subvalue1")
	f("19 of 20/minute", "key2=something")
	f("29 of 30/minute", "key2=value2")
	f("0", "key2=value3")
	f("0 of 1/hour", "key3=foo")
	f("0 of 1/day key4_rate_limit", "key4=foo")
	f("4294967295", "key6=foo")
	f("69 of 70/minute", "key7=unspecified_value")
	s.want("OK | OK 0", "another-domain", "key2=something")
}
