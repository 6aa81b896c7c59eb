package rls_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rls"
)

// lockedText is a log that may be read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Where two services differ is counted by domain and rule, and shown. The answer to the client
// does not wait for the other, nor for one that is not there.
func TestCompare(t *testing.T) {
	other := serve(t, inMemory(t, `
domain: d
descriptors:
  - { key: same, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: other, rate_limit: { unit: day, requests_per_unit: 1 } }
`))
	type place struct {
		domain, rule string
		agree        bool
	}
	var (
		mu   sync.Mutex
		told = map[place]int{}
		log  lockedText
	)
	c, err := rls.NewCompare(rls.CompareOptions{
		Address: other.addr, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Told: func(domain, rule string, agree bool) {
			mu.Lock()
			defer mu.Unlock()
			told[place{domain, rule, agree}]++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	o := inMemory(t, `
domain: d
descriptors:
  - { key: same, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: other, rate_limit: { unit: day, requests_per_unit: 5 } }
`)
	o.Compare = c
	s := serve(t, o)
	for i, want := range []string{"OK", "OK", "OVER"} { // one by one: calls may overtake each other on their way to the other service
		if got := s.codes(1, "d", "same=x", "other=x"); got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
		testdep.Eventually(t, "the comparison", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return told[place{"d", "d.same", true}] == i+1 && told[place{"d", "d.other", false}] == i+1
		})
	}
	testdep.Eventually(t, "a sample", func() bool { return strings.Contains(log.String(), "answers differently") })
	if n := strings.Count(log.String(), "answers differently"); n > 2 {
		t.Errorf("%d samples within moments", n)
	}

	gone, err := rls.NewCompare(rls.CompareOptions{Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gone.Close() })
	o.Compare = gone
	s = serve(t, o)
	for range 3000 {
		s.ask(request("d", "other=y"))
	}
	testdep.Eventually(t, "calls that could not be compared", func() bool {
		skipped, failed := gone.Stats()
		return skipped+failed > 0
	})
}
