package rules

import "testing"

// Of the limit before, the same share is set aside as of the one in its place: whoever has used up the rest is refused, and
// those for whom it is set aside have it.
func TestPredecessorSetsAsideTheSameShare(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "sliding_log", "sub_windows", "fixed_window", "sliding_window"} {
		for _, new := range []string{"20/2m", "10/minute", "5/30s", "2/12s", "1/6s"} {
			with := func(limits string) string {
				return "classes: [{ name: high, match: /high }, { name: rest }]\n" + rulesOf("limits: "+limits+", set_aside: { high: 50% }")
			}
			d := newDesk(t, with("{ rate: 20/2m, algorithm: "+algorithm+" }"))
			d.passes(10, as("GET /", "user", "ann"))
			d.reload(with(new))
			if now := d.ask(as("GET /", "user", "ann")); now.OK {
				t.Errorf("%s to %s: refilled, %d more", algorithm, new, now.Remaining)
			}
			if now := d.ask(as("GET /high", "user", "ann")); !now.OK {
				t.Errorf("%s to %s: what is set aside is refused: %+v", algorithm, new, now)
			}
		}
	}
}
