package lint

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// heavyEvents is how many timestamps take 8 kB.
const heavyEvents = 1000

func heavyLog(p *pass) {
	p.eachLimit(func(r *rulefile.Rule, l rulefile.Limit) {
		if l.Spec.Algorithm == tidegate.SlidingLog && l.Spec.Events > heavyEvents && !p.sharedByAll(r) {
			p.warn(l.Pos, fmt.Sprintf("the log of %s keeps a timestamp of 8 bytes for each event: up to %d kB for every caller", diag.Quote(l.Text), l.Spec.Events*8/1000),
				"remove `algorithm: sliding_log`, or write `{ algorithm: sub_windows, ceiling: true }`, which never exceeds the limit either and takes half a kilobyte")
		}
	})
}
