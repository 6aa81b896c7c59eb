package telemetry

import (
	"sync"
	"sync/atomic"
)

// table finds the counts of a name, by a lookup in a map that is replaced, never written. A name that
// was not announced is added at its first use. Names should come from the operator's files; in case
// they do not, their number is bounded, and all further ones are counted together as [Other].
type table[T any] struct {
	fresh func(name string) *T
	mu    sync.Mutex
	all   atomic.Pointer[map[string]*T]
	// announced has the names of the last two calls of announce; true means the last. A decision under
	// way may add a name again that has just been forgotten. Under mu.
	announced map[string]bool
}

// Other is the name under which all names beyond the bound are counted.
const Other = "(other)"

// maxNames is how many names a table may have, announced ones included, for one that was not announced
// to be added.
const maxNames = 1000

func newTable[T any](fresh func(name string) *T) *table[T] {
	t := &table[T]{fresh: fresh}
	t.all.Store(&map[string]*T{})
	return t
}

func (t *table[T]) get(name string) *T {
	if v := (*t.all.Load())[name]; v != nil {
		return v
	}
	return t.add(name)
}

func (t *table[T]) add(name string) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := *t.all.Load()
	if before[name] == nil && len(before) >= maxNames {
		name = Other
	}
	if v := before[name]; v != nil {
		return v
	}
	after := make(map[string]*T, len(before)+1)
	for k, v := range before {
		after[k] = v
	}
	v := t.fresh(name)
	after[name] = v
	t.all.Store(&after)
	return v
}

// announce keeps what was counted for names, and forgets and returns those that were announced before
// and are not among them. Names that no file has stay, such as that of bans.
func (t *table[T]) announce(names []string) (gone []*T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := *t.all.Load()
	after, announced := make(map[string]*T, len(names)), make(map[string]bool, len(names))
	for _, name := range names {
		v := before[name]
		if v == nil {
			v = t.fresh(name)
		}
		after[name], announced[name] = v, true
	}
	for name, v := range before {
		if _, was := t.announced[name]; was && !announced[name] {
			gone = append(gone, v)
			continue
		}
		after[name] = v
	}
	for name, last := range t.announced {
		if last && !announced[name] {
			announced[name] = false
		}
	}
	t.all.Store(&after)
	t.announced = announced
	return gone
}
