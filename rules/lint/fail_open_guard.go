package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func failOpenGuard(p *pass) {
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled || r.OnStoreFailure != rulefile.FailAllow {
			continue
		}
		pos := r.BlockPos
		switch {
		case r.Count != nil:
			pos = r.Count.Pos
		case r.Block == 0:
			continue
		}
		p.warn(pos, diag.Quote(r.Name.Text)+" guards against guessing, and with `on_store_failure: allow` nothing does while the store is away",
			"write `on_store_failure: local` in the rule: each node goes on counting by itself")
	}
}
