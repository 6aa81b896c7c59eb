package eventual

import "tidegate.dev/tidegate"

// part is a vector, divided into the checks that this layer counts and the rest.
type part struct {
	own      []tidegate.Check
	ownFrom  []int // their indexes in the vector; nil means that own is all of it
	rest     []tidegate.Check
	restFrom []int
}

// divide divides checks, and reports whether this layer counts some of them.
func divide(checks []tidegate.Check) (p part, some bool) {
	ours := 0
	for i := range checks {
		if Is(checks[i].Limit) {
			ours++
		}
	}
	switch ours {
	case 0:
		return p, false
	case len(checks):
		return part{own: checks}, true
	}
	p = part{
		own: make([]tidegate.Check, 0, ours), ownFrom: make([]int, 0, ours),
		rest: make([]tidegate.Check, 0, len(checks)-ours), restFrom: make([]int, 0, len(checks)-ours),
	}
	for i := range checks {
		if Is(checks[i].Limit) {
			p.own, p.ownFrom = append(p.own, checks[i]), append(p.ownFrom, i)
		} else {
			p.rest, p.restFrom = append(p.rest, checks[i]), append(p.restFrom, i)
		}
	}
	return p, true
}

func (p *part) copyOver(checks []tidegate.Check) {
	for i, at := range p.ownFrom {
		checks[at].Over = p.own[i].Over
	}
	for i, at := range p.restFrom {
		checks[at].Over = p.rest[i].Over
	}
}
