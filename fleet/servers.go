package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/store/redis"
)

// Eviction reports that a server evicts keys when its memory is full, or may do so.
type Eviction struct {
	Server string // its address in a cluster, the name of a shard, otherwise "Redis"
	// Policy is its maxmemory-policy, by which it may evict counters.
	Policy string
	// Evicted is how many keys, whatever their prefix, it has evicted since the last report; 0
	// means that it may evict some.
	Evicted int64
}

func (e Eviction) String() string {
	return fmt.Sprintf("%s evicts counters when its memory is full, and their callers get a full limit again: set maxmemory-policy to noeviction instead of %s", e.Server, e.Policy)
}

const (
	// infoPause is the pause between two runs of INFO.
	infoPause = 5 * time.Second
	// infoLasts is how long the result of INFO counts: after a failover a server may be gone for good.
	infoLasts = 4 * infoPause
)

// servers runs INFO on the servers, above all to see whether they evict keys. It does so in the
// background, when it hears that they answer.
type servers struct {
	info func(context.Context) ([]redis.Info, error)
	tell func(Eviction) // may be nil

	mu      sync.Mutex
	looking bool                  // under mu
	next    time.Time             // under mu: when INFO may be run next
	seen    map[string]serverInfo // under mu: by server
	evicted int64                 // under mu: since Open
}

type serverInfo struct {
	redis.Info
	at time.Time
}

// look runs INFO in the background, unless that was done within infoPause.
func (e *servers) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.looking || now.Before(e.next) {
		return
	}
	e.looking, e.next = true, now.Add(infoPause)
	go func() {
		// If this user may not run INFO, nothing is reported: all else works.
		all, _ := e.info(context.Background())
		e.mu.Lock()
		defer e.mu.Unlock()
		e.looking = false
		for _, m := range all {
			e.noteLocked(m, time.Now())
		}
	}()
}

func (e *servers) noteLocked(m redis.Info, now time.Time) {
	before, known := e.seen[m.Server]
	if e.seen == nil {
		e.seen = make(map[string]serverInfo)
	}
	e.seen[m.Server] = serverInfo{m, now}
	grown := m.Evicted - before.Evicted
	switch {
	case !known: // what was evicted before the first look does not count
		grown = 0
	case grown < 0: // the server was restarted
		grown = m.Evicted
	}
	e.evicted += grown
	policy := m.MayEvict() && (!known || !before.MayEvict() || before.Policy != m.Policy)
	if e.tell != nil && (policy || grown > 0) {
		e.tell(Eviction{Server: m.Server, Policy: m.Policy, Evicted: grown})
	}
}

// warnings returns a sentence for each server that may evict counters, by name of the server.
func (e *servers) warnings(now time.Time) (all []string) {
	for _, m := range e.shown(now) {
		if m.MayEvict() {
			all = append(all, Eviction{Server: m.Server, Policy: m.Policy}.String())
		}
	}
	return all
}

// total returns how many keys were evicted since Open, as far as is known.
func (e *servers) total() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.evicted
}

// shown returns the recent results of INFO, by name of the server.
func (e *servers) shown(now time.Time) (all []redis.Info) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.seen {
		if now.Sub(m.at) < infoLasts {
			all = append(all, m.Info)
		}
	}
	slices.SortFunc(all, func(a, b redis.Info) int { return strings.Compare(a.Server, b.Server) })
	return all
}
