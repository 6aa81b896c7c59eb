package cli

import (
	"fmt"
	"sync/atomic"
	"time"
)

// keysProgress shows on stderr how many live keys a server has looked at so far.
type keysProgress struct {
	env   Env
	began time.Time
	wrote atomic.Bool
}

// show rewrites the line. It is called from a goroutine of the HTTP client.
func (p *keysProgress) show(keys int64) {
	p.wrote.Store(true)
	what := "looking for live keys"
	if keys > 0 {
		what = pluralKeys(keys) + " looked at"
	}
	fmt.Fprintf(p.env.Stderr, "\r%.0f s: %s ", time.Since(p.began).Seconds(), what)
}

// end ends the line, if anything was shown.
func (p *keysProgress) end() {
	if p.wrote.Load() {
		fmt.Fprintln(p.env.Stderr)
	}
}
