package checkapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/store/memory"
)

// farAway is a store that takes a while to answer, and from the question number silent on,
// unless that is 0, never does.
type farAway struct {
	chain.Backend
	takes  time.Duration
	silent int
	asked  int
}

func (f *farAway) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	takes := f.takes
	if f.asked++; f.silent > 0 && f.asked >= f.silent {
		takes = 24 * time.Hour
	}
	select {
	case <-time.After(takes):
		return f.Backend.Take(ctx, checks, n)
	case <-ctx.Done():
		return tidegate.Decision{}, ctx.Err()
	}
}

// As many questions as may be asked at once are all answered by the store, however far away it
// is, as long as it is near enough for one; and all limits of a caller are told of.
func TestManyQuestionsToAStoreFarAway(t *testing.T) {
	const deadline = 250 * time.Millisecond
	var rules, checks strings.Builder
	rules.WriteString("rules:\n  - { name: all, per: everyone, limits: 1000000/hour }\n")
	for i := range 60 {
		fmt.Fprintf(&rules, "  - { name: r%d, match: GET /p%d, per: ip, limits: 10/hour }\n", i, i)
	}
	for _, takes := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 20 * time.Millisecond, deadline - 1} {
		for _, n := range []int{1, 2, 64, 256} {
			synctest.Test(t, func(t *testing.T) {
				far := &farAway{Backend: chain.Adapt(memory.New()), takes: takes}
				s := serverOn(t, queue.New(far), rules.String(), func(o *Options) { o.Deadline = deadline })
				checks.Reset()
				for i := range n {
					fmt.Fprintf(&checks, `,{"path":"/p%d","ip":"192.0.2.%d"}`, i%60, i%250)
				}
				for _, verb := range []string{"check", "peek"} {
					w := ask(t, s, "POST", "/v1/"+verb, `{"checks":[`+checks.String()[1:]+`]}`)
					if w.Code != 200 || strings.Contains(w.Body.String(), "fallback") || strings.Contains(w.Body.String(), "limited") {
						t.Errorf("%s of %d, %s away: %d %.300s", verb, n, takes, w.Code, w.Body)
					}
				}
				if n > 1 || takes > deadline/4 { // each limit is asked by itself, two to a request
					return
				}
				for _, w := range []string{ask(t, s, "POST", "/v1/usage", `{"ip":"192.0.2.1"}`).Body.String(), ask(t, s, "GET", "/v1/usage", "", "X-Forwarded-For: 192.0.2.1").Body.String()} {
					if strings.Contains(w, "failed") || strings.Count(w, `"rule"`) != 61 {
						t.Errorf("usage, %s away: %s", takes, w)
					}
				}
			})
		}
	}
}

// A store that stops to answer holds up many questions for no longer than one.
func TestManyQuestionsToAStoreThatIsSilent(t *testing.T) {
	const deadline = 250 * time.Millisecond
	for _, silent := range []int{1, 2, 100} {
		synctest.Test(t, func(t *testing.T) {
			far := &farAway{Backend: chain.Adapt(memory.New()), takes: time.Millisecond, silent: silent}
			s := serverOn(t, queue.New(far), "rules: [{ name: site, per: ip, limits: 1000/hour }]", func(o *Options) { o.Deadline = deadline })
			start := time.Now()
			w := ask(t, s, "POST", "/v1/check", `{"checks":[`+strings.Repeat(`{"ip":"192.0.2.1"},`, 255)+`{}]}`)
			if took, want := time.Since(start), deadline+time.Duration(silent-1)*time.Millisecond; took != want {
				t.Errorf("silent from %d on: answered after %s, want %s", silent, took, want)
			}
			var got struct{ Answers []struct{ Fallback bool } }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Answers) != 256 {
				t.Fatalf("%d answers, %v", len(got.Answers), err)
			}
			for i, a := range got.Answers {
				if a.Fallback != (i >= silent-1) {
					t.Fatalf("silent from %d on: answer %d has fallback %t", silent, i, a.Fallback)
				}
			}
		})
	}
}
