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

// isRuns reports whether lim is a sliding_log or sub_windows.
func (lim *compiledLimit) isRuns() bool { return lim.kind == logs || lim.kind == parts }

// altKey returns the other key that the counter of lim may be kept under: that of the counts
// for a log, and that of the log for counts.
func (lim *compiledLimit) altKey(key string) string {
	if lim.kind == parts {
		return key + ":log:" + lim.limit.Period.String()
	}
	brace := strings.LastIndexByte(key, '}')
	return key[:brace+1]
}

// inParts returns the limit that reads the counter of a log that was found in n parts; with
// 0, the log itself.
func (lim *compiledLimit) inParts(n int64) *compiledLimit {
	original := lim.original()
	if n == 0 {
		original.asParts.Store(nil)
		return original
	}
	if made := original.asParts.Load(); made != nil && made.parts == n {
		return made
	}
	l := original.limit
	spec := tidegate.Spec{
		Name: l.Name, Scope: l.Scope, Events: l.Events, Period: l.Period,
		Algorithm: tidegate.SubWindows, Parts: int(n), Ceiling: true,
	}
	counted, err := tidegate.NewLimit(spec)
	if err != nil { // no limit can have counted so
		return original
	}
	made := newCompiledLimit("", counted)
	made.start, made.limit, made.identity, made.log = original.start, l, original.identity, original
	original.asParts.Store(made)
	return made
}

// original returns the log that lim stands for, or lim itself.
func (lim *compiledLimit) original() *compiledLimit {
	if lim.log != nil {
		return lim.log
	}
	return lim
}

// asLastSeen returns lim as its counters were kept when last seen.
func (lim *compiledLimit) asLastSeen() *compiledLimit {
	if made := lim.asParts.Load(); made != nil {
		return made
	}
	return lim
}

// move makes p use its counter where a script found it.
func (p *pendingCheck) move(n int64) {
	next := p.lim.inParts(n)
	if next.kind != p.lim.kind {
		p.key = p.lim.altKey(p.key)
	}
	p.lim = next
}

// move makes c use its counter where a script found it.
func (c *change) move(n int64) {
	next := c.lim.inParts(n)
	if next.kind != c.lim.kind {
		c.key = c.lim.altKey(c.key)
	}
	c.lim = next
}

// moved reports whether the reply says that a counter is kept elsewhere: that of check or change i of a
// request, in n parts, or as a log if n is 0.
func (r reply) moved(most int) (i int, n int64, ok bool, err error) {
	if len(r) != 3 || r[0] != -2 {
		return 0, 0, false, nil
	}
	if r[1] < 1 || r[1] > int64(most) || r[2] < 0 || r[2] > tidegate.MaxParts {
		return 0, 0, false, invalidReply("a counter that has moved: check %d of %d, in %d parts", r[1], most, r[2])
	}
	return int(r[1] - 1), r[2], true, nil
}

// maxMoves returns how often a request of that many checks is sent again because counters were
// found elsewhere, or dates were missing.
func maxMoves(checks int) int { return maxMisses + 2*checks }
