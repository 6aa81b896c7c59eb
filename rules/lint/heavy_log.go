package lint

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/diag"
	"tidegate.dev/tidegate/internal/rulefile"
)

// heavyEvents are as many stamps as take 8 kB.
const heavyEvents = 1000

func heavyLog(p *pass) {
	p.eachLimit(func(r *rulefile.Rule, l rulefile.Limit) {
		if l.Spec.Algorithm == tidegate.SlidingLog && l.Spec.Events > heavyEvents && !p.together(r) {
			p.warn(l.Pos, fmt.Sprintf("the log of %s keeps a stamp of 8 bytes for each event: up to %d kB for every caller", diag.Quote(l.Text), l.Spec.Events*8/1000),
				"take `algorithm: sliding_log` out, or write `{ algorithm: sub_windows, ceiling: true }`, which is never over either and takes half a kilobyte")
		}
	})
}
