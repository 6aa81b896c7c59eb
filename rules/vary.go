package rules

import (
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// vary is a limit with one number that comes from the caller: the events of `limits: { from }`, or
// the day on which a quota period starts.
type vary struct {
	id    *identity
	most  int64 // numbers are from 1 to most
	clamp bool  // numbers beyond are set to the nearest; otherwise they are ignored
	// otherwise is for callers without a number.
	otherwise *held
	make      func(n int64) (held, error)

	mu   sync.Mutex
	made atomic.Pointer[map[int64]*held] // replaced, never written
}

// maxVaried bounds the limits that are kept. They are cheap to make again, and a caller that can
// choose the number must not fill the memory.
const maxVaried = 1024

// of returns the limit for the request: otherwise if it has no number, or one that is ignored.
func (v *vary) of(st *state, h *hit) *held {
	found, ok := st.find(v.id, h)
	if !ok {
		return v.otherwise
	}
	n, ok := parseNumber(found.text)
	if !ok || !v.clamp && (n < 1 || n > v.most) {
		return v.otherwise
	}
	return v.get(min(max(n, 1), v.most))
}

func (v *vary) get(n int64) *held {
	if made := (*v.made.Load())[n]; made != nil {
		return made
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before := *v.made.Load()
	if made := before[n]; made != nil {
		return made
	}
	made, err := v.make(n)
	if err != nil {
		return v.otherwise // cannot happen: the limits for 1 and most are valid, so those in between are
	}
	after := make(map[int64]*held, len(before)+1)
	if len(before) < maxVaried {
		for k, old := range before {
			after[k] = old
		}
	}
	after[n] = &made
	v.made.Store(&after)
	return &made
}

// newVary returns a vary that makes its limits with makes. The error is about the limits for 1 and
// most, which it makes to check that they are valid.
func newVary(id *identity, most int64, clamp bool, otherwise held, makes func(n int64) (held, error)) (*vary, error) {
	v := &vary{id: id, most: most, clamp: clamp, otherwise: &otherwise, make: makes}
	v.made.Store(&map[int64]*held{})
	for _, n := range []int64{1, most} {
		if _, err := makes(n); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// events returns an item for `{ from: ... }`; spec is the limit of else.
func (l *limiter) events(ids *identities, from *rulefile.From, spec tidegate.Spec, scope string, as role, over *rulefile.Over) (item, error) {
	otherwise, err := l.held(spec, scope, as, over)
	if err != nil {
		return item{}, err
	}
	one := l.rule.limiter()
	v, err := newVary(ids.from(from.Source), from.Max, true, otherwise, func(n int64) (held, error) {
		spec := spec
		spec.Events = n
		return one.held(spec, scope, as, over)
	})
	return item{vary: v}, err
}

// anchored returns an item for a quota whose first day comes from the caller.
func (l *limiter) anchored(ids *identities, q *rulefile.Quota, scope string, as role, over *rulefile.Over) (item, error) {
	otherwise, err := l.held(q.Spec, scope, as, over)
	if err != nil {
		return item{}, err
	}
	one := l.rule.limiter()
	v, err := newVary(ids.from(*q.AnchorFrom), 31, false, otherwise, func(n int64) (held, error) {
		spec := q.Spec
		spec.Anchor = int(n)
		return one.held(spec, scope, as, over)
	})
	return item{vary: v}, err
}
