package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// newNode is New around any store.
func newNode(inner tidegate.Store, o Options) *Node { return New(chain.Adapt(inner), o) }

// forFew returns o with tables for few keys, for tests that open hundreds of nodes: tables of the usual size are 7 MB,
// and the race detector needs several times that beside them.
func forFew(o Options) Options {
	if o.Remember = 1 << 12; o.DenyEntries == 0 {
		o.DenyEntries = 1 << 12
	}
	return o
}

// fault is what is the matter with a store.
type fault uint8

const (
	none   fault = iota
	broken       // errors at once, as a refused connection
	frozen       // does not return before its context ends, as a stopped server
	deaf         // does not return at all, whatever its context says
	slowed       // takes 200 ms, whatever its context says, and charges then
	mad          // panics
)

var errBroken = errors.New("connection refused")

// common is what the nodes of a fleet share.
type common struct {
	mu     sync.Mutex
	memory *memory.Store
}

func (s *common) store() *memory.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		s.memory = memory.New()
	}
	return s.memory
}

// restart loses everything.
func (s *common) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = nil
}

// faulty is a node's way to a server, which can be made to fail. The zero value
// works, and has a server of its own.
type faulty struct {
	mu     sync.Mutex
	fault  fault
	adjust fault // of Adjust alone
	server *common
	wake   chan struct{} // closed to let the deaf go
	calls  int
	posts  []tidegate.Check          // what Adjust charged
	named  map[tidegate.Receipt]bool // what Adjust was called by, whatever came of it
}

// set changes what is the matter. Those that were deaf return.
func (f *faulty) set(to fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
	f.fault = to
}

// setAdjust changes what is the matter with Adjust alone.
func (f *faulty) setAdjust(to fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.adjust = to
}

// begin suffers what is the matter, and gives the store that answers.
func (f *faulty) begin(ctx context.Context, adjusting bool) (*memory.Store, error) {
	f.mu.Lock()
	f.calls++
	if f.server == nil {
		f.server = new(common)
	}
	if f.wake == nil {
		f.wake = make(chan struct{})
	}
	is, server, wake := f.fault, f.server, f.wake
	if adjusting && is == none {
		is = f.adjust
	}
	f.mu.Unlock()
	switch is {
	case broken:
		return nil, errBroken
	case frozen:
		<-ctx.Done()
		return nil, ctx.Err()
	case deaf:
		<-wake
		return nil, errBroken
	case slowed:
		time.Sleep(200 * time.Millisecond)
	case mad:
		panic("mad")
	}
	return server.store(), nil
}

func (f *faulty) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	store, err := f.begin(ctx, false)
	if err != nil {
		return tidegate.Decision{}, err
	}
	return store.Take(ctx, checks, n)
}

func (f *faulty) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	f.mu.Lock()
	if f.named == nil {
		f.named = map[tidegate.Receipt]bool{}
	}
	f.named[r] = true
	f.mu.Unlock()
	store, err := f.begin(ctx, true)
	if err != nil {
		return err
	}
	f.mu.Lock()
	for _, c := range checks {
		if c.Cost > 0 {
			f.posts = append(f.posts, c)
		}
	}
	f.mu.Unlock()
	return store.Adjust(ctx, r, checks)
}

func (f *faulty) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	store, err := f.begin(ctx, false)
	if err != nil {
		return err
	}
	return store.Renew(ctx, r, checks)
}

func (f *faulty) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	store, err := f.begin(ctx, false)
	if err != nil {
		return tidegate.Decision{}, err
	}
	return store.Reserve(ctx, checks, ttl)
}

func (f *faulty) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	store, err := f.begin(ctx, false)
	if err != nil {
		return err
	}
	return store.Settle(ctx, r, actual)
}

func (f *faulty) Reset(ctx context.Context, checks []tidegate.Check) error {
	store, err := f.begin(ctx, false)
	if err != nil {
		return err
	}
	return store.Reset(ctx, checks)
}

// asked is how often the store was called.
func (f *faulty) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// adjusted reports whether Adjust was called by r.
func (f *faulty) adjusted(r tidegate.Receipt) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.named[r]
}

// posted is what Adjust charged to a key of l.
func (f *faulty) posted(l *tidegate.Limit, key string) (total int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.posts {
		if c.Key == key && c.Limit.Identity() == l.Identity() {
			total += c.Cost
		}
	}
	return total
}

// byFallback reports whether d was decided in place of the backend.
func byFallback(d *tidegate.Decision) bool {
	return d.Receipt.Origin == tidegate.OriginLocal || d.Receipt.Origin == tidegate.OriginRule
}
