package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// The nodes that share the counters are a sorted set under the key PREFIX:nodes. No
// counter has that key, since theirs contain :{. In a cluster every master has such a set,
// the others under PREFIX:nodes{NUMBER}: a node in any set that can be read is counted,
// whatever happens to the other masters. Every shard has one under PREFIX:nodes, whatever
// other shards there are.

func (s *Store) nodeSet() string { return s.prefix + ":nodes" }

// maxNodeSets is how many masters have a set of nodes.
const maxNodeSets = 64

// nodeSet is one of the sets.
type nodeSet struct {
	server string // its name; "" if there is one server
	key    string
	at     *endpoint
}

// nodeSets returns all sets, of former shards as well.
func (s *Store) nodeSets() (all []nodeSet) {
	if s.sharded() {
		for _, e := range s.endpoints {
			all = append(all, nodeSet{e.name, s.nodeSet(), e})
		}
		return all
	}
	t, at := s.topology.current.Load(), s.endpoints[0]
	if t == nil || len(t.masters) < 2 {
		return []nodeSet{{"", s.nodeSet(), at}}
	}
	found := make(map[*master]bool)
	note := func(key string) {
		if m := t.owners[slotOfKey(key)]; m != nil && !found[m] {
			found[m] = true
			all = append(all, nodeSet{m.addr, key, at})
		}
	}
	note(s.nodeSet()) // the only one that older versions know
	want := min(len(t.masters), maxNodeSets)
	for i := 0; len(all) < want && i < slotCount; i++ {
		note(s.nodeSet() + "{" + strconv.Itoa(i) + "}")
	}
	return all
}

// Beat registers an instance for h.TTL from now on, by Redis' clock. In a cluster and on
// shards there may be both a roster and an error, which says which servers did not answer:
// its method Servers has their names.
func (s fleetStore) Beat(ctx context.Context, h chain.Heartbeat) (r chain.Roster, err error) {
	if h.ID == "" || h.TTL < time.Millisecond || len(h.About) > chain.MaxAbout {
		return r, fmt.Errorf("redis: Beat(%q, %s) with %d bytes: %w", h.ID, h.TTL, len(h.About), errBeat)
	}
	nodeSets := s.nodeSets()
	if len(nodeSets) == 1 {
		r, _, err = s.beatAt(ctx, nodeSets[0], h, 0)
		if s.cluster {
			s.refreshTopology()
		}
		return r, s.failure("beat", err)
	}
	if end, ok := ctx.Deadline(); ok { // leave the caller time for those that do answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	var merged mergedRoster // late answers may still change it after this returns
	missed := unanswered{}
	free := slices.DeleteFunc(nodeSets, func(set nodeSet) bool { // the others have not answered the last one
		missed[set.server] = errNoAnswer
		_, busy := s.beatsInFlight.LoadOrStore(set.server, make(chan struct{}))
		return busy
	})
	eachNodeSet(ctx, free, func(ctx context.Context, set nodeSet) error {
		defer s.beatEnded(set.server)
		ctx, end := untilDeadline(ctx) // Leave waits for it, also after the caller has given up
		defer end()
		one, names, err := s.beatAt(ctx, set, h, maxNamed)
		if one.Clock.Server = set.server; err == nil {
			merged.add(one, names)
		}
		return err
	}, missed)
	r = merged.get()
	if len(missed) == 0 {
		return r, nil
	}
	s.refreshTopology()
	for name, err := range missed {
		missed[name] = s.failure("beat", err)
	}
	return r, missed
}

// untilDeadline returns ctx without its other end.
func untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	at, ok := ctx.Deadline()
	if ctx = context.WithoutCancel(ctx); !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at)
}

// beatEnded notes that a server has answered, or that nobody waits for that any more.
func (s *Store) beatEnded(server string) {
	if ended, ok := s.beatsInFlight.LoadAndDelete(server); ok {
		close(ended.(chan struct{}))
	}
}

// mergedRoster joins what several servers answer: the union of their lists, or the longest of
// them if some are too long to be named.
type mergedRoster struct {
	mu     sync.Mutex
	is     chain.Roster
	before map[int64]bool // whether a node comes before this one, by the hash of its name
}

func (m *mergedRoster) add(r chain.Roster, names []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Live > m.is.Live || r.Live == m.is.Live && r.Rank < m.is.Rank {
		m.is.Live, m.is.Rank = r.Live, r.Rank
	}
	if m.before == nil {
		m.before = make(map[int64]bool)
	}
	for _, name := range names {
		m.before[name/2] = name%2 == 1
	}
	if len(m.before) >= m.is.Live {
		m.is.Live, m.is.Rank = len(m.before), 0
		for _, before := range m.before {
			if before {
				m.is.Rank++
			}
		}
	}
	m.is.Listed = m.is.Listed || r.Listed
	if c := r.Clock; !m.is.Clock.Known() || c.Beyond() > m.is.Clock.Beyond() {
		m.is.Clock = c
	}
}

func (m *mergedRoster) get() chain.Roster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.is
}

// eachNodeSet calls do for every set at the same time, until ctx ends. It notes in missed the servers
// that failed or have not answered, and why.
func eachNodeSet(ctx context.Context, nodeSets []nodeSet, do func(context.Context, nodeSet) error, missed unanswered) {
	type end struct {
		server string
		err    error
	}
	ends := make(chan end, len(nodeSets))
	for _, set := range nodeSets {
		missed[set.server] = errNoAnswer
		go func() { ends <- end{set.server, do(ctx, set)} }()
	}
	for range nodeSets {
		select {
		case e := <-ends:
			if missed[e.server] = e.err; e.err == nil {
				delete(missed, e.server)
			}
		case <-ctx.Done():
			return
		}
	}
}

// unanswered is the servers that did not answer, and why.
type unanswered map[string]error

func (s unanswered) Error() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fmt.Sprintf("%s: %v", name, s[name]))
	}
	return strings.Join(all, "; ")
}

func (s unanswered) Unwrap() []error { return slices.Collect(maps.Values(s)) }

// Servers returns the servers that did not answer, and why.
func (s unanswered) Servers() map[string]error { return s }

var errNoAnswer = errors.New("no answer in time")

// maxNamed is how many nodes a server names when it is asked for the union of several lists. It
// is bounded because every node asks every server, several times in a TTL.
const maxNamed = 256

// beatAt registers an instance at one server. names has a number for each instance that is registered
// there, or none if there are more than most; see beat.lua.
func (s *Store) beatAt(ctx context.Context, set nodeSet, h chain.Heartbeat, most int) (r chain.Roster, names []int64, err error) {
	of := s.tag()
	var head packer
	head.number(float64(of))
	ms := strconv.FormatInt(h.TTL.Milliseconds(), 10)
	start, sent := time.Now(), s.clock.micros()
	got, err := set.at.runNumbers(ctx, beatScript(), []string{set.key, aboutKey(set.key, h.ID)}, []string{string(head), h.ID, ms, h.About, strconv.Itoa(most)}, of)
	if err == nil && (len(got) < 4 || got[0] < 1 || got[0] > maxNodes || got[1] < 0 || got[2] < 0 || got[2] >= got[0]) {
		err = invalidReply("a heartbeat answered with %d", got)
	}
	if err == nil {
		names = got[4:]
		if named := got[0] <= int64(most); named && int64(len(names)) != got[0] || !named && len(names) > 0 {
			err = invalidReply("a heartbeat names %d of %d instances", len(names), got[0])
		}
	}
	if err != nil {
		return r, nil, err
	}
	// The script ran at some time between now and then: in the middle, within half of it.
	half := time.Since(start)/2 + time.Microsecond
	r.Live, r.Rank, r.Listed = int(got[0]), int(got[2]), got[3] == 1
	r.Clock = chain.Clock{Offset: time.Duration(sent-got[1])*time.Microsecond + half, Within: half}
	return r, names, nil
}

// maxNodes is more than ever share counters.
const maxNodes = 1 << 20

// Leave unregisters id. It first waits for a heartbeat that is under way, which could register id again.
func (s fleetStore) Leave(ctx context.Context, id string) error {
	missed := unanswered{}
	eachNodeSet(ctx, s.nodeSets(), func(ctx context.Context, set nodeSet) error {
		if beat, busy := s.beatsInFlight.Load(set.server); busy {
			select {
			case <-beat.(chan struct{}):
			case <-ctx.Done():
				return errNoAnswer
			}
		}
		return set.forget(ctx, id)
	}, missed)
	if len(missed) == 0 {
		return nil
	}
	return s.failure("leave", missed)
}

var errBeat = errors.New("want a name, a time of at least a millisecond, and few bytes")
