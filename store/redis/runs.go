package redis

import (
	"strings"

	"tidegate.dev/tidegate"
)

// sliding_log and sub_windows are one family: a counter of one identity, kept as a list of
// stamps or as counts of so many parts, whatever it was begun as. A change of the limit's
// resolution refills nobody:
//
//   - sub_windows that find stamps turn them into counts of their parts;
//   - sub_windows that find counts of other parts go on with those;
//   - a sliding_log that finds counts goes on with those, as strictly as they can be read:
//     a part leaves the window whole.
//
// Counts become stamps again, or counts of other parts, when there are none left. The
// scripts of parts find all of that under the keys they are given. The script of a log
// says how many parts it found, and is then asked again as the script of these.

// inRuns reports whether b is one of the family.
func (b *bound) inRuns() bool { return b.kind == logs || b.kind == parts }

// twin is the key under which the counter of b may be kept the other way.
func (b *bound) twin(key string) string {
	if b.kind == parts {
		return key + ":log:" + b.limit.Period.String()
	}
	brace := strings.LastIndexByte(key, '}')
	return key[:brace+1]
}

// inParts is a log whose counter was found in n parts; 0 is the log again.
func (b *bound) inParts(n int64) *bound {
	home := b.home()
	if n == 0 {
		home.strict.Store(nil)
		return home
	}
	if made := home.strict.Load(); made != nil && made.parts == n {
		return made
	}
	l := home.limit
	spec := tidegate.Spec{
		Name: l.Name, Scope: l.Scope, Events: l.Events, Period: l.Period,
		Algorithm: tidegate.SubWindows, Parts: int(n), Ceiling: true,
	}
	counted, err := tidegate.NewLimit(spec)
	if err != nil { // no limit can have counted so
		return home
	}
	made := newBound("", counted, home.family)
	made.start, made.limit, made.log = home.start, l, home
	home.strict.Store(made)
	return made
}

// home is the log that b stands for, or b itself.
func (b *bound) home() *bound {
	if b.log != nil {
		return b.log
	}
	return b
}

// guess is b as its counters were kept when last seen.
func (b *bound) guess() *bound {
	if made := b.strict.Load(); made != nil {
		return made
	}
	return b
}

// move has p ask for its counter where a script found it.
func (p *plan) move(n int64) {
	p.b = p.b.inParts(n)
	p.key = p.b.name(p.check.Key)
}

// move has c change its counter where a script found it.
func (c *change) move(n int64) {
	next := c.b.inParts(n)
	if next.kind != c.b.kind {
		c.key = c.b.twin(c.key)
	}
	c.b = next
}

// moved says that the check or change i of a request was found to be kept in n parts.
func (r reply) moved(most int) (i int, n int64, ok bool, err error) {
	if len(r) != 3 || r[0] != -2 {
		return 0, 0, false, nil
	}
	if r[1] < 1 || r[1] > int64(most) || r[2] < 0 || r[2] > tidegate.MaxParts {
		return 0, 0, false, nonsense("%d about %d checks", r, most)
	}
	return int(r[1] - 1), r[2], true, nil
}

// maxMoves is how often a request of so many checks is sent again because counters were
// found elsewhere, or calendar bounds missed.
func maxMoves(checks int) int { return maxMisses + 2*checks }
