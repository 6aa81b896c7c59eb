package rls_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/front/rls"
)

// upstreamEnv names a folder with the configurations that envoyproxy/ratelimit has in its own
// tests, examples and README. Without it this project's own files are tested, as always.
const upstreamEnv = "TIDEGATE_ENVOY_CONFIGS"

// The configurations of envoyproxy/ratelimit itself are answered as it answers them.
func TestUpstreamConfigurations(t *testing.T) {
	dir := os.Getenv(upstreamEnv)
	if dir == "" {
		t.Skip(upstreamEnv + " names no folder of configurations")
	}
	on := func(file string, test func(s *service)) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			test(serve(t, inMemory(t, read(t, filepath.Join(dir, file)))))
		})
	}
	codes := func(s *service, want string, n int, domain string, descriptors ...string) {
		s.Helper()
		if got := s.codes(n, domain, descriptors...); got != want {
			s.Errorf("%d x %q: %s, want %s", n, descriptors, got, want)
		}
	}
	times := func(ok, over int) string {
		return strings.TrimSpace(strings.Repeat("OK ", ok) + strings.Repeat("OVER ", over))
	}
	for _, file := range []string{"readme/example01.yaml", "upstream-example/config.yaml"} {
		on(file, func(s *service) {
			s.want("OK | OK 499 of 500/second", "mongo_cps", "database=users")
			s.want("OK | OK 499 of 500/second", "mongo_cps", "database=default")
			s.want("OK | OK 0", "mongo_cps", "database=other")
		})
	}
	on("readme/example02.yaml", func(s *service) {
		both := []string{"message_type=marketing, to_number=1", "to_number=1"}
		codes(s, times(5, 2), 7, "messaging", both...)
		s.want("OVER | OVER 0 of 5/day | OK 92 of 100/day", "messaging", both...)
	})
	on("readme/example03.yaml", func(s *service) {
		codes(s, times(0, 3), 3, "edge_proxy_per_ip", "remote_address=50.0.0.5")
		codes(s, times(10, 2), 12, "edge_proxy_per_ip", "remote_address=50.0.0.6")
	})
	on("readme/example04a.yaml", func(s *service) {
		s.want("OK | OK 0", "example4", "key=value, subkey=x")
		s.want("OK | OK 299 of 300/second", "example4", "key=value")
	})
	on("readme/example04b.yaml", func(s *service) {
		s.want("OK | OK 299 of 300/second", "example4", "key=value, subkey=x")
		s.want("OK | OK 299 of 300/second", "example4", "key=value, subkey=y")
	})
	on("readme/example05.yaml", func(s *service) {
		s.want("OK | OK 4294967295", "internal", "ldap=x")
		s.want("OK | OK 99 of 100/minute", "internal", "azure=x")
	})
	on("readme/example06.yaml", func(s *service) {
		codes(s, times(15, 0), 15, "example6", "service=x, user=user-a")
		codes(s, times(20, 1), 21, "example6", "service=x, user=user-b")
	})
	on("readme/example07.yaml", func(s *service) {
		codes(s, times(10, 1), 11, "example7", "key_1=value_1, user=bkthomps", "key_2=value_2, user=bkthomps")
		s.want("OK | OK 4 of 5/second specific_limit", "example7", "key_1=value_1, user=bkthomps")
	})
	on("readme/example08.yaml", func(s *service) {
		s.want("OK | OK 9 of 10/minute", "example8", "key1=other")
		s.want("OK | OK 19 of 20/minute", "example8", "key1=value1")
	})
	on("readme/example09a.yaml", func(s *service) {
		s.want("OK | OK 19 of 20/minute", "example9", "key1=value1")
		s.want("OK | OK 19 of 20/minute", "example9", "key1=value2")
		s.want("OK | OK 0", "example9", "key1=other")
	})
	on("readme/example09b.yaml", func(s *service) {
		s.want("OK | OK 19 of 20/minute", "example9", "path=/api/123/action")
		s.want("OK | OK 0", "example9", "path=/api/123/other")
	})
	on("readme/example09c.yaml", func(s *service) {
		s.want("OK | OK 19 of 20/minute", "example9", "route=/api/v1/resource/123/action")
	})
	on("readme/example11a.yaml", shared("example11"))
	on("upstream-integration/share_threshold.yaml", shared("share-threshold-test"))
	on("upstream-integration/another.yaml", func(s *service) {
		codes(s, times(20, 5), 25, "another", "key2=x")
		codes(s, times(10, 5), 15, "another", "key3=x")
	})
	on("upstream-integration/basic.yaml", func(s *service) {
		s.want("OK | OK 49 of 50/second", "basic", "key1=foo")
		codes(s, times(1, 1), 2, "basic", "one_per_minute=x")
	})
	on("upstream-integration/reload.yaml", func(s *service) { codes(s, times(0, 2), 2, "reload", "block=x") })
	on("upstream-test/wildcard.yaml", func(s *service) {
		for _, d := range []string{"wild=foo1", "wild=foo2", "midWild=barab", "midWild=bar123b", "midWild=barb", "nestedWild=val1, wild=goo2"} {
			s.want("OK | OK 19 of 20/minute", "test-domain", d)
		}
		for _, d := range []string{"multiWild=foo123bar456baz", "multiWild=foobarbaz"} {
			s.want("OK | OK 9 of 10/minute", "test-domain", d)
		}
		for _, d := range []string{"wild=bar", "noWild=foo1", "midWild=bara", "midWild=xbarb", "multiWild=foo123baz", "multiWild=bar456baz"} {
			s.want("OK | OK 0", "test-domain", d)
		}
	})
	on("upstream-test/shadowmode_config.yaml", func(s *service) {
		codes(s, times(30, 2), 32, "test-domain", "key2=value2")
		codes(s, times(32, 0), 32, "test-domain", "key2=other")
		codes(s, times(15, 0), 15, "test-domain", "key1=value1, subkey1=subvalue1")
	})
	on("upstream-test/basic_config.yaml", func(s *service) {
		for descriptor, want := range map[string]string{
			"key1=something": "0", "key1=value1": "0", "key2=value2, subkey=subvalue": "0", "key5=value5, subkey5=subvalue": "0",
			"key1=value1, subkey1=something": "4 of 5/second", "key1=value1, subkey1=subvalue1": "9 of 10/second",
			"key2=something": "19 of 20/minute", "key2=value2": "29 of 30/minute", "key2=value3": "0", "key3=foo": "0 of 1/hour",
			"key4=foo": "0 of 1/day key4_rate_limit", "key6=foo": "4294967295", "key7=unspecified_value": "69 of 70/minute",
		} {
			s.want("OK | OK "+want, "test-domain", descriptor)
		}
	})
	demo(t, dir)
	metrics(t, dir)
}

// shared are two rules of 10/hour: files/* have one counter, files_no_share/* one each.
func shared(domain string) func(*service) {
	return func(s *service) {
		for i, file := range []string{"a.pdf", "b.csv"} {
			for j := range 5 {
				s.want(fmt.Sprintf("OK | OK %d of 10/hour", 9-5*i-j), domain, "files=files/"+file)
			}
		}
		s.want("OVER | OVER 0 of 10/hour", domain, "files=files/c.txt")
		for _, file := range []string{"a", "b"} {
			s.want("OK | OK 9 of 10/hour", domain, "files_no_share=files_no_share/"+file)
		}
	}
}

// demo is the table of calls of the integration scripts.
func demo(t *testing.T, dir string) {
	for _, row := range []struct {
		name string
		runs [][]string // what is answered, then the descriptors
	}{
		{"value", [][]string{{"OK OK OK OVER", "foo=pelle, baz=not-so-shady"}}},
		{"shadow", [][]string{{"OK OK OK OK OK", "foo=pelle, baz=shady"}}},
		{"ban", [][]string{{"OVER", "foo=bkthomps, bar=banned"}}},
		{"ban stays", [][]string{{"OVER", "foo=bkthomps, bar=banned", "source_cluster=proxy, destination_cluster=mock"}}},
		{"ban replaced", [][]string{{"OK OK OVER", "foo=bkthomps, bar=banned", "source_cluster=proxy, destination_cluster=override"}}},
		{"untouched", [][]string{
			{"OK OK OVER", "foo=my_foo, bar=bkthomps", "source_cluster=proxy, destination_cluster=bkthomps"},
			{"OK OVER", "foo=my_foo, bar=bkthomps", "source_cluster=proxy, destination_cluster=not_bkthomps"},
		}},
		{"two replaced", [][]string{{"OK OK OK OK OVER", "foo=my_foo, bar=bkthomps", "source_cluster=proxy, destination_cluster=fake", "category=account"}}},
		{"detailed", [][]string{{"OK OK OVER", "unspec=unspecified_value"}}},
		{"quota", [][]string{{"OK OK OVER", "service=service_1", "service=service_2"}}},
	} {
		t.Run("example "+row.name, func(t *testing.T) {
			s := serve(t, inMemory(t, read(t, filepath.Join(dir, "upstream-example/example.yaml"))))
			for _, run := range row.runs {
				if got := s.codes(len(strings.Fields(run[0])), "rl", run[1:]...); got != run[0] {
					t.Errorf("%q: %s, want %s", run[1:], got, run[0])
				}
			}
		})
	}
}

// metrics are the metric keys.
func metrics(t *testing.T, dir string) {
	for _, row := range [][4]string{
		{"readme/example08.yaml", "example8", "key1=other", "example8.key1_other"},
		{"readme/example08.yaml", "example8", "key1=value1", "example8.key1_value1"},
		{"readme/example10a.yaml", "example10", "route=api, http_method=GET, subject_id=7", "example10.route_api.http_method_GET.subject_id"},
		{"readme/example10b.yaml", "example10_wildcard", "user=alice, action=readfile, resource=7", "example10_wildcard.user_alice.action_readfile.resource"},
		{"readme/example11b.yaml", "example11_metrics", "route=api/v1, method=GET", "example11_metrics.route_api/*.method"},
		{"upstream-test/basic_config.yaml", "test-domain", "key7=unspecified_value", "test-domain.key7_unspecified_value"},
		{"upstream-example/example.yaml", "rl", "unspec=unspecified_value", "rl.unspec_unspecified_value"},
	} {
		t.Run("metric "+row[3], func(t *testing.T) {
			o := inMemory(t, read(t, filepath.Join(dir, row[0])))
			seen := &keys{}
			o.Stats = seen
			s := serve(t, o)
			s.ask(request(row[1], row[2]))
			if got := seen.last(); got != row[3] {
				t.Errorf("%s, want %s", got, row[3])
			}
		})
	}
}

var _ rls.Stats = (*keys)(nil)
