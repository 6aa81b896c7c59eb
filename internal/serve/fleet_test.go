package serve

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/fleet"
)

func TestFleetWarnings(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	well := func(name string, offset time.Duration) fleet.Member {
		return fleet.Member{ID: "ID" + name, Known: true, Name: name, Rules: "aaaa", Status: fleet.OK, Since: at, Instances: 3, Clock: fleet.Clock{Offset: offset, Within: time.Millisecond}}
	}
	with := func(m fleet.Member, change func(*fleet.Member)) fleet.Member {
		change(&m)
		return m
	}
	f := func(members []fleet.Member, want ...string) {
		t.Helper()
		got := fleetWarnings(members)
		if len(got) != len(want) {
			t.Errorf("got %q, want %q", got, want)
			return
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	}
	f(nil)
	f([]fleet.Member{well("a", 0), well("b", 99*time.Millisecond), well("c", -100*time.Millisecond), with(well("d", 0), func(m *fleet.Member) { m.Clock = fleet.Clock{} })})
	// What is not certain is no reason to worry.
	f([]fleet.Member{well("a", 0), with(well("b", 500*time.Millisecond), func(m *fleet.Member) { m.Clock.Within = 450 * time.Millisecond })})
	f([]fleet.Member{well("a", 0), well("b", 150*time.Millisecond), well("c", -2*time.Second)},
		"the clock of b is 150ms ahead of Redis: ", "the clock of c is 2s behind Redis: ")
	f([]fleet.Member{well("a", 3*time.Second), well("b", 3050*time.Millisecond)},
		"the clocks of all instances agree with each other and are 3s ahead of Redis: synchronize the clock of Redis")
	f([]fleet.Member{well("a", 3*time.Second), well("b", 4*time.Second)}, "the clock of a is 3s ahead", "the clock of b is 4s ahead")
	f([]fleet.Member{well("a", 3*time.Second)}, "the clock of a is 3s ahead")

	rules := func(name, revision string) fleet.Member {
		return with(well(name, 0), func(m *fleet.Member) { m.Rules = revision })
	}
	f([]fleet.Member{rules("a", "1111"), rules("b", "2222"), rules("c", "1111"), rules("d", "")}, "the rules differ: 1111 (a, c), 2222 (b); either a rollout is under way")
	var many []fleet.Member
	for i := range 8 {
		many = append(many, rules(fmt.Sprint("n", i), fmt.Sprint("r", i/7)))
	}
	f(many, "r0 (n0, n1, n2, n3, n4 and 2 more), r1 (n7);")

	f([]fleet.Member{with(well("a", 0), func(m *fleet.Member) { m.Status = fleet.Degraded })}, "a has been degraded since 03:04:05 UTC")
	f([]fleet.Member{with(well("a", 0), func(m *fleet.Member) { m.Status = fleet.Recovering })}, "a has been recovering since")
	f([]fleet.Member{with(well("a", 0), func(m *fleet.Member) {
		m.Status, m.Out, m.OutCount = fleet.Partial, []string{"10.0.0.1:6379"}, 3
	})}, "a has been partial since 03:04:05 UTC: Redis does not answer it everywhere (10.0.0.1:6379 and 2 more)")
	f([]fleet.Member{with(well("a", 0), func(m *fleet.Member) { m.Status = fleet.Partial })}, "some rules cannot be asked about")
	f([]fleet.Member{{ID: "OLD"}, {ID: "OLDER"}}, "2 instances tell nothing about themselves, as they are of an older version: OLD, OLDER")
	f([]fleet.Member{{ID: "OLD"}}, "an instance tells nothing about itself, being of an older version: OLD")
	f([]fleet.Member{with(well("", 0), func(m *fleet.Member) { m.Status = fleet.Degraded })}, "ID has been degraded")

	follows := func(name string, version int64) fleet.Member {
		return with(well(name, 0), func(m *fleet.Member) { m.Follows, m.Orders = true, version })
	}
	f([]fleet.Member{follows("a", 7), follows("b", 6), follows("c", 7)}, "bans and overrides may not hold everywhere, as not all have the last of them: b")
	f([]fleet.Member{follows("a", 7), well("b", 0)}, "bans and overrides do not hold where they are not followed, in older versions and some programs: b")
	f([]fleet.Member{follows("a", 0), well("b", 0)}) // nothing was ever ordered
	now := time.Now().UnixMicro()
	f([]fleet.Member{follows("a", now), follows("b", 6)}) // there was no heartbeat since
}

// The log has a line when the clock differs, and one when it no longer does.
func TestLogOfTheClock(t *testing.T) {
	var text strings.Builder
	s := storeLog{log: slog.New(slog.NewTextHandler(&text, nil))}
	s.clock(fleet.Clock{Offset: -1500 * time.Millisecond, Within: time.Millisecond})
	s.clock(fleet.Clock{Offset: 3 * time.Millisecond, Within: time.Millisecond})
	for _, want := range []string{`level=WARN msg="the clock of this machine is 1.5s behind Redis: `, "offset=-1.5s", `level=INFO msg="the clock of this machine agrees with that of the store again" offset=3ms`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s does not have %q", &text, want)
		}
	}
}
