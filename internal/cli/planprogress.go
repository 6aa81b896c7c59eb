package cli

import (
	"fmt"
	"sync/atomic"
	"time"
)

// keysProgress shows on stderr how many live keys a server has looked at.
type keysProgress struct {
	env   Env
	began time.Time
	wrote atomic.Bool
}

func (p *keysProgress) show(keys int64) {
	p.wrote.Store(true)
	what := "looking for live keys"
	if keys > 0 {
		what = pluralKeys(keys) + " looked at"
	}
	fmt.Fprintf(p.env.Stderr, "\r%.0f s: %s ", time.Since(p.began).Seconds(), what)
}

func (p *keysProgress) end() {
	if p.wrote.Load() {
		fmt.Fprintln(p.env.Stderr)
	}
}
