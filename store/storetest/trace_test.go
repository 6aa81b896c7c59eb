package storetest

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// A script with a mistake is answered with its place and what to write.
func TestTraceMistakes(t *testing.T) {
	const limits = "limit log: 2/1m sliding_log\n"
	f := func(line, want string) {
		t.Helper()
		_, err := parseTrace("x.trace", limits+line)
		if err == nil {
			t.Errorf("%q was accepted", line)
			return
		}
		if got := err.Error(); !strings.HasPrefix(got, "x.trace:2: ") || !strings.Contains(got, want) {
			t.Errorf("%q:\n\tgot  %s\n\twant %s", line, got, want)
		}
	}
	f("take log -> ok", `unknown line "take"`)
	f("limit other 2/1m", `a limit is written "limit NAME: 5/1m sliding_log"`)
	f("limit log: 3/1m sliding_log", "a limit is new, a relimit known")
	f("relimit other: 3/1m sliding_log", "a limit is new, a relimit known")
	f("relimit log: 3/2m sliding_log", "only numbers may change")
	f("limit other: x/1m sliding_log", `events "x"`)
	f("limit other: 2/1x sliding_log", `period "1x"`)
	f("limit other: 2/1m slidinglog", `unknown algorithm "slidinglog"`)
	f("limit other: 2/1m token_bucket burst", `"burst" needs a value`)
	f("limit other: 2/1m token_bucket bursts 3", "bursts 3: want burst")
	f("limit other: 0/1m token_bucket", "a limit needs at least 1")
	f("limit other: 2/hour quota", `not "hour"`)
	f("date 2026-13-01", "month out of range")
	f("zone Nowhere", "Nowhere")
	f("at 1:00:00", `a step is written "at 1:00:00 take NAME -> ok"`)
	f("at noon take log -> ok", `time "noon"`)
	f("at 1:00:00 take log", "take needs an answer to expect")
	f("at 1:00:00 give log -> ok", `unknown command "give"`)
	f("at 1:00:00 take -> ok", "take needs the name of a limit")
	f("at 1:00:00 take loq -> ok", `no limit is called "loq"`)
	f("at 1:00:00 take log costs=3 -> ok", `option "costs=3"`)
	f("at 1:00:00 take log cost=x -> ok", `option "cost=x"`)
	f("at 1:00:00 return log", "return needs of=X")
	f("at 1:00:00 take log -> yes", `verdict "yes"`)
	f("at 1:00:00 take log -> ok remaining", "want a verdict and then pairs")
	f("at 1:00:00 take log -> ok left 3", "expected left 3: want remaining")
	f("at 1:00:00 take log -> ok retry soon", "expected retry soon")
	f("at 1:00:00 take log -> ok by loq", `no limit is called "loq"`)
}

// A script that does not come true says what was expected and what came.
func TestTraceFailures(t *testing.T) {
	const start = `
		limit log: 2/1m sliding_log
		limit streams: 1 slots lease 1m
		at 1:00:00 take log as=a     -> ok remaining 1
		at 1:00:00 acquire streams as=s -> ok
		at 1:00:00 reserve log as=r  -> ok remaining 0
	`
	f := func(line, want string) {
		t.Helper()
		steps, err := parseTrace("x.trace", start+line)
		if err != nil {
			t.Fatal(err)
		}
		c := newClock()
		p := player{store: newReference(c.now), clock: c, receipts: map[string]tidegate.Receipt{}}
		for i, s := range steps {
			err := p.play(s)
			last := i == len(steps)-1
			switch {
			case !last && err != nil:
				t.Fatalf("%q: %v", s.text, err)
			case last && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%q:\n\tgot  %v\n\twant %s", line, err, want)
			}
		}
	}
	f("at 1:00:01 take log -> ok", "expected ok, got: no remaining 0 retry 59s")
	f("at 1:00:01 take log cost=3 -> no", "expected no, got: never")
	f("at 1:00:01 take log -> no retry 1m", "expected retry 1m0s, got: no remaining 0 retry 59s")
	f("at 1:01:00 take log times=3 -> ok", "time 3 of 3: expected ok, got: no")
	f("at 1:01:00 take log -> ok remaining 0", "expected remaining 0, got: ok granted 1 remaining 1")
	f("at 1:01:00 take log copies=3 -> ok granted 3", "expected granted 3, got: ok granted 2")
	f("at 1:01:00 take log -> ok reset 1s", "expected reset 1s, got: ")
	f("at 1:01:00 take log -> ok wait 1s", "expected wait 1s, got: ")
	f("at 1:01:00 take log streams -> ok by log", "expected it to be by log: 2/1m0s sliding_log, got: ok granted 1 remaining 0")
	f("at 1:01:00 take log cost=-1 -> ok", "the store could not answer")
	f("at 1:01:00 renew streams of=s -> ok", "expected ok, got: lease ran out")
	f("at 1:00:59 renew streams of=s -> lost", "expected lost, got: ok")
	f("at 1:00:59 renew streams of=b -> ok", "nothing was marked as=b")
	f("at 1:00:01 settle of=r -> settled", "expected settled, got: ok")
	f("at 1:00:01 settle of=a -> ok", "expected ok, got: reservation is settled")
}
