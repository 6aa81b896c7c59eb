package fit

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// Report is what was observed of a rule.
type Report struct {
	// Since is when this process began to observe.
	Since time.Time `json:"since"`
	// Refusals is how many there were since then, Last when the last was; 0 means none.
	Refusals int64     `json:"refusals"`
	Last     time.Time `json:"last,omitzero"`
	// Limit is the limit that refused, in words.
	Limit string `json:"limit,omitempty"`
	// Keys is about how many keys were refused; Sampled of them were examined.
	Keys    int64 `json:"keys"`
	Sampled int64 `json:"sampled"`
	// Within12 and Within2 are how many of the sampled keys never asked for more than 1.2 times, or
	// twice, what the limit allows in a period.
	Within12 int64 `json:"within_1_2"`
	Within2  int64 `json:"within_2"`
	// Clumps is how many bursts of refusals have ended, with ClumpRefusals in total; ShortRefusals
	// were in those shorter than 2 s.
	Clumps        int64 `json:"clumps"`
	ClumpRefusals int64 `json:"clump_refusals"`
	ShortRefusals int64 `json:"short_refusals"`
	// Burst would have admitted nine of ten short clumps; 0 means that there were none.
	Burst int64 `json:"burst,omitempty"`
	// Heaviest is by which factor the busiest key exceeded the limit in a period.
	Heaviest float64 `json:"heaviest,omitempty"`
	// Advice says what to do about it, with the numbers that support it.
	Advice []Advice `json:"advice"`

	limit *tidegate.Limit
}

// Advice is a sentence and its evidence.
type Advice struct {
	Text     string `json:"text"`
	Evidence string `json:"evidence"`
}

// Report returns what was observed of a rule so far; if it has several limits, of the one that has
// refused most.
func (f *Fit) Report(rule string, now time.Time) Report {
	f.mu.RLock()
	is := Report{Since: f.began.UTC(), Advice: []Advice{}}
	var all []*seen
	for n, s := range f.limits {
		if n.rule == rule {
			all = append(all, s)
		}
	}
	f.mu.RUnlock()
	for _, s := range all {
		if one := s.report(f.began, now); one.Refusals > is.Refusals {
			is = one
		}
	}
	is.advise(now)
	return is
}

func (s *seen) report(since, now time.Time) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := Report{Since: since.UTC(), Refusals: s.refusals, Last: s.last.UTC(), Limit: words(s.limit), Advice: []Advice{}, limit: s.limit}
	is.Sampled = int64(len(s.keys))
	is.Keys = is.Sampled << s.zeros
	for _, k := range s.keys {
		if k.clump > 0 && now.Sub(k.last) > clumpGap {
			s.sampled.endClump(k)
		}
		if k.most <= 1.2 {
			is.Within12++
		}
		if k.most <= 2 {
			is.Within2++
		}
		is.Heaviest = max(is.Heaviest, k.most)
	}
	is.Clumps, is.ClumpRefusals, is.ShortRefusals = s.sampled.clumps, s.sampled.ended, s.sampled.short
	if n := min(s.sampled.sizesSeen, maxClumps); n > 0 {
		sizes := slices.Sorted(slices.Values(s.sampled.sizes[:n]))
		is.Burst = s.limit.Capacity() + int64(sizes[(len(sizes)*9+9)/10-1])
	}
	return is
}
