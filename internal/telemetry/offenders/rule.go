package offenders

import (
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate"
)

const (
	// maxRules have lists of their own; all further ones share those of [Other].
	maxRules  = 1000
	cacheSize = 512
)

// Other is the name under which all rules beyond maxRules are listed.
const Other = "(other)"

// rules finds rules by name, in a map that is replaced, never written. In front of it is a cache by the
// address of the name, which all limits of a rule share.
type rules struct {
	cache     [cacheSize]atomic.Pointer[Rule]
	all       atomic.Pointer[map[string]*Rule]
	announced map[string]struct{} // guarded by Offenders.mu
}

// Rule has the lists of one rule; see [Offenders.Rule].
type Rule struct {
	name    string
	classes [classes]class
	// Guarded by Offenders.mu:
	lists     [kinds]*list // those that have had an entry
	announced bool         // by SetRules
	gone      bool         // nothing may be kept here any more
}

// nameOf returns the name of a limit's rule; "" if the limit has no Terms.
func nameOf(l *tidegate.Limit) string {
	if l.Terms == nil {
		return ""
	}
	return l.Terms.Rule
}

// Rule returns the rule to pass to [Offenders.Admitted] and [Offenders.Refused]. An unknown name is
// added; if there are too many, it returns the rule Other. A rule that [Offenders.SetRules] announced
// stays valid until SetRules is called without its name.
func (of *Offenders) Rule(name string) *Rule { return of.get(name) }

// get returns the rule of a name, and adds an unknown one. For a known one it allocates nothing and
// takes no lock.
func (of *Offenders) get(name string) *Rule {
	if r := of.table.cached(name).Load(); r != nil && r.name == name {
		return r
	}
	return of.find(name)
}

// cached returns the slot of the cache that a name belongs in.
func (t *rules) cached(name string) *atomic.Pointer[Rule] {
	return &t.cache[uintptr(unsafe.Pointer(unsafe.StringData(name)))>>4%cacheSize]
}

// find is get for a rule that is not cached.
func (of *Offenders) find(name string) *Rule {
	all := *of.table.all.Load()
	r := all[name]
	if r == nil && len(all) >= maxRules {
		r = all[Other]
	}
	if r == nil {
		r = of.add(name)
	}
	of.table.cached(name).Store(r)
	return r
}

func (of *Offenders) add(name string) *Rule {
	of.mu.Lock()
	defer of.mu.Unlock()
	before := *of.table.all.Load()
	if before[name] == nil && len(before) >= maxRules {
		name = Other
	}
	if r := before[name]; r != nil {
		return r
	}
	after := make(map[string]*Rule, len(before)+1)
	for k, v := range before {
		after[k] = v
	}
	_, announced := of.table.announced[name]
	r := &Rule{name: name, announced: announced}
	after[name] = r
	of.table.all.Store(&after)
	return r
}

// replace replaces the map and empties the cache. A goroutine that has just read the old map may put a
// removed rule back into the cache: see [Offenders.begin].
func (t *rules) replace(all map[string]*Rule) {
	t.all.Store(&all)
	for i := range t.cache {
		t.cache[i].Store(nil)
	}
}

// list returns the list of a kind, and creates it if there is none.
func (of *Offenders) list(r *Rule, k kind) *list {
	if r.lists[k] == nil {
		r.lists[k] = of.pool.newList(k, of.now)
	}
	return r.lists[k]
}

// advance moves the lists of r to the current slice, and frees empty ones.
func (of *Offenders) advance(r *Rule) {
	for i, l := range r.lists {
		if l == nil {
			continue
		}
		of.pool.advance(l, of.now)
		if l.idle() {
			r.lists[i] = nil
		}
	}
}

// class counts decisions that are sampled at one rate.
type class struct {
	mask  atomic.Uint32 // one in mask+1 is looked at
	carry atomic.Uint32 // the weight of decisions that found the lists locked
	// Guarded by Offenders.mu:
	taken uint32 // looked at since the last tick, or since cap was last exceeded
	seen  uint32 // decisions since the last tick, as estimated
}

const (
	common  = iota // admitted
	rare           // refused, or would be
	classes = rare + 1
)
