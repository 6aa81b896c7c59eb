package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/store/redis"
)

// Eviction is what a server does to counters when its memory is full.
type Eviction struct {
	Server string // its address in a cluster, otherwise "Redis"
	// Policy is its maxmemory-policy, by which it may evict counters.
	Policy string
	// Evicted is how many keys it has evicted since it was last told of, of whatever prefix;
	// 0: it may.
	Evicted int64
}

func (e Eviction) String() string {
	return fmt.Sprintf("%s evicts counters when its memory is full, and whoever was counted starts afresh: set maxmemory-policy to noeviction instead of %s", e.Server, e.Policy)
}

// evictionPause is between two looks at the memory of the servers.
const evictionPause = 5 * time.Second

// evictions watches whether servers evict keys. It looks when it is told that they answer,
// beside the requests.
type evictions struct {
	memory func(context.Context) ([]redis.Memory, error)
	tell   func(Eviction) // may be nil

	mu      sync.Mutex
	looking bool                    // under mu
	next    time.Time               // under mu: not before
	seen    map[string]redis.Memory // under mu: by server
	evicted int64                   // under mu: since Open
}

// look has the memory looked at, unless that was done a moment ago.
func (e *evictions) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.looking || now.Before(e.next) {
		return
	}
	e.looking, e.next = true, now.Add(evictionPause)
	go func() {
		// If this user may not run INFO, nothing is reported: all else works.
		all, _ := e.memory(context.Background())
		e.mu.Lock()
		defer e.mu.Unlock()
		e.looking = false
		for _, m := range all {
			e.noteLocked(m)
		}
	}()
}

func (e *evictions) noteLocked(m redis.Memory) {
	before, known := e.seen[m.Server]
	if e.seen == nil {
		e.seen = make(map[string]redis.Memory)
	}
	e.seen[m.Server] = m
	grown := m.Evicted - before.Evicted
	switch {
	case !known: // what was evicted before is history
		grown = 0
	case grown < 0: // it was started anew
		grown = m.Evicted
	}
	e.evicted += grown
	policy := m.MayEvict() && (!known || !before.MayEvict() || before.Policy != m.Policy)
	if e.tell != nil && (policy || grown > 0) {
		e.tell(Eviction{Server: m.Server, Policy: m.Policy, Evicted: grown})
	}
}

// warnings say which servers may evict counters.
func (e *evictions) warnings() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.seen {
		if m.MayEvict() {
			all = append(all, Eviction{Server: m.Server, Policy: m.Policy}.String())
		}
	}
	slices.Sort(all)
	return all
}

func (e *evictions) total() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.evicted
}
