package rls_test

import (
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Other algorithms do not count what they refuse, give back what they counted, and several
// limits hold together: in memory and on Redis alike.
func TestAlgorithms(t *testing.T) {
	server := testdep.Redis(t)
	for _, algorithm := range []string{"fixed_window", "token_bucket", "sliding_log", "sliding_window", "sub_windows"} {
		config := `
domain: d
descriptors:
  - { key: fixed, rate_limit: { unit: hour, requests_per_unit: 100000 } }
  - key: five
    rate_limit: { unit: hour, requests_per_unit: 5, tidegate: { algorithm: ` + algorithm + `, count_rejected: false } }
`
		for place, open := range map[string]func(t *testing.T) *service{
			"memory": func(t *testing.T) *service { return serve(t, inMemory(t, config)) },
			"redis": func(t *testing.T) *service {
				server.Do("FLUSHALL")
				s, _ := onRedis(t, server, config, patient)
				return s
			},
		} {
			t.Run(algorithm+" "+place, func(t *testing.T) { algorithmHits(open(t)) })
		}
	}
	t.Run("several", func(t *testing.T) {
		s := serve(t, inMemory(t, `
domain: d
descriptors:
  - key: k
    rate_limit: { tidegate: { limits: [2/second, 3/hour] } }
`))
		for _, want := range []string{"OK", "OK", "OVER"} {
			if got := s.codes(1, "d", "k=x"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

func algorithmHits(s *service) {
	s.Helper()
	s.want("OVER | OVER 5 of 5/hour", "d", "five=x hits 10")
	s.want("OK | OK 3 of 5/hour", "d", "five=x hits 2")
	s.want("OVER | OVER 3 of 5/hour", "d", "five=x hits 4")
	s.want("OK | OK 3 of 5/hour", "d", "five=x hits 0")
	s.want("OK | OK 0 of 5/hour", "d", "five=x hits 3")
	s.want("OVER | OVER 0 of 5/hour", "d", "five=x")
	s.want("OK | OK 2 of 5/hour", "d", "five=x back 2")
	s.want("OK | OK 1 of 5/hour", "d", "five=x")
	s.want("OK | OK 5 of 5/hour", "d", "five=x back 100")
	s.want("OK | OK 5 of 5/hour", "d", "five=never back 3")
	s.want("OK | OK 0 of 5/hour | OK 2 of 5/hour | OK 1 of 5/hour", "d", "five=x hits 5", "five=x back 2", "five=x")
	s.want("OVER | OVER 1 of 5/hour | OK 2 of 5/hour", "d", "five=x hits 2", "five=x back 1")
}

// A rule that settles charges whatever is left, and refuses nobody.
func TestSettle(t *testing.T) {
	s := serve(t, inMemory(t, `
domain: d
descriptors:
  - key: tokens
    rate_limit: { unit: hour, requests_per_unit: 100, tidegate: { settle: true } }
`))
	s.want("OK | OK 60 of 100/hour", "d", "tokens=x hits 40")
	s.want("OK | OK 0 of 100/hour", "d", "tokens=x hits 500")
	s.want("OVER | OVER 0 of 100/hour", "d", "tokens=x hits 0")
}
