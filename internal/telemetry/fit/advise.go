package fit

import (
	"fmt"
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

const (
	// fewRefusals is too few for any advice.
	fewRefusals = 20
	// most is the share from which on a statement applies to most keys, and many to many.
	most = 0.6
	many = 0.3
)

// advise derives advice from the numbers, and none that they do not support.
func (r *Report) advise(now time.Time) {
	switch {
	case r.Refusals == 0:
		r.add("It has refused nobody here. If it is meant as a guard, that is fine; if it is meant to bite, the number may be too high.",
			"no refusal since %s (%s)", clock(r.Since), lasted(now.Sub(r.Since)))
		return
	case r.Refusals < fewRefusals:
		r.add("There are too few refusals to say more.", "%s by %s since %s", plural(r.Refusals, "refusal"), plural(r.Keys, "key"), clock(r.Since))
		return
	}
	r.adviseRate()
	r.adviseBurst()
	if len(r.Advice) == 0 { // otherwise a few heavy keys are not the cause
		r.adviseHeavy()
	}
	if len(r.Advice) == 0 {
		r.add("Nothing here says that the number is wrong.", "%s by about %s since %s, the last %s ago",
			plural(r.Refusals, "refusal"), plural(r.Keys, "key"), clock(r.Since), lasted(now.Sub(r.Last)))
	}
}

// adviseRate advises about keys that want slightly more than the limit.
func (r *Report) adviseRate() {
	if r.Sampled < 3 {
		return
	}
	for _, near := range []struct {
		times  float64
		within int64
	}{{1.2, r.Within12}, {2, r.Within2}} {
		if share := float64(near.within) / float64(r.Sampled); share >= most {
			events := int64(math.Ceil(float64(r.limit.Events) * near.times))
			r.add(fmt.Sprintf("%s of the keys that are refused want a little more than they get: %d/%s would refuse none of those.", percent(share), events, r.limit.Period),
				"%d of %s never asked for more than %v times the limit in %s", near.within, keysText(r), near.times, r.limit.Period)
			return
		}
	}
}

// adviseBurst advises about clients that send several requests at once and then pause.
func (r *Report) adviseBurst() {
	if r.ClumpRefusals < fewRefusals || r.Burst == 0 {
		return
	}
	share := float64(r.ShortRefusals) / float64(r.ClumpRefusals)
	if share < most {
		return
	}
	how := fmt.Sprintf("burst %d would admit them", r.Burst)
	if r.limit.Algorithm != tidegate.TokenBucket {
		how = fmt.Sprintf("`algorithm: token_bucket` with `burst: %d` would admit them, at the same rate", r.Burst)
	}
	r.add(fmt.Sprintf("%s of refusals are clumps below %s: %s.", percent(share), ShortClump, how),
		"%d of %d refusals in %s; nine of ten of the short ones need no more", r.ShortRefusals, r.ClumpRefusals, plural(r.Clumps, "clump"))
}

// adviseHeavy advises about a few keys that want many times the limit.
func (r *Report) adviseHeavy() {
	heavy := r.Sampled - r.Within2
	if share := float64(heavy) / float64(r.Sampled); heavy == 0 || share < many {
		return
	}
	r.add("Some ask for many times the limit. No number near this one would serve them: look at who they are.",
		"%d of %s asked for more than twice the limit in %s, the busiest for %.1f times", heavy, keysText(r), r.limit.Period, r.Heaviest)
}

func (r *Report) add(text, evidence string, args ...any) {
	r.Advice = append(r.Advice, Advice{text, fmt.Sprintf(evidence, args...)})
}

func keysText(r *Report) string {
	if r.Keys == r.Sampled {
		return plural(r.Keys, "key")
	}
	return fmt.Sprintf("%d sampled of about %s", r.Sampled, plural(r.Keys, "key"))
}

// words returns a limit without its name: 100/1m0s sub_windows.
func words(l *tidegate.Limit) string { return strings.TrimPrefix(l.String(), l.Name+": ") }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func lasted(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
