package lint

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// clientTimeout is how long most proxies and clients wait.
const clientTimeout = time.Minute

func queueLongerThanClients(p *pass) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		if t.Queue != nil && t.Queue.MaxWait > clientTimeout {
			p.warn(t.Queue.Pos, fmt.Sprintf("requests wait in the queue of %s for up to %s, and most clients and proxies give up after a minute", diag.Quote(r.Name.Text), t.Queue.MaxWait),
				"write a `max_wait` of some seconds; what may take longer, keep with `defer`")
		}
	})
}
