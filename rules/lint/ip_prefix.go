package lint

import (
	"fmt"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// One subscriber has at least a /64 of IPv6. A provider has a /32 of IPv6; a /16 of IPv4 is 65,536
// addresses.
const (
	subscriber6 = 64
	provider6   = 32
	provider4   = 16
)

func ipPrefix(p *pass) {
	for _, id := range p.file.Identify {
		if !p.countedBy(id.Name.Text) {
			continue
		}
		for _, s := range id.Sources {
			switch {
			case s.Kind != rulefile.SourceIP:
			case s.Bits6 > subscriber6:
				p.warn(s.Pos, fmt.Sprintf("a subscriber can send from any address of its IPv6 /64, so with a counter per /%d it gets a fresh one whenever it likes", s.Bits6),
					fmt.Sprintf("write `ip /%d /64`", s.Bits4))
			case s.Bits4 < provider4 || s.Bits6 < provider6:
				p.warn(s.Pos, fmt.Sprintf("an IPv4 /%d or IPv6 /%d is a whole provider: all its customers share one counter", s.Bits4, s.Bits6),
					"write `ip /24 /48` for neighbours, `ip` for one subscriber, or `everyone`")
			}
		}
	}
}

// countedBy reports whether some rule counts per name.
func (p *pass) countedBy(name string) bool {
	for _, r := range p.file.Rules {
		for _, per := range r.Per {
			if per.Text == name {
				return true
			}
		}
	}
	return false
}
