package redis

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// topology says which server has which slots. That of a cluster decides which master gets a
// batch; the client has such a table, too, but does not export it. It may be out of date: a master
// that is asked about the key of another one says so. That of shards is computed once.
type topology struct {
	masters []*master
	owners  [slotCount]*master // nil if not known
	names   []string           // of masters by number, "" for a number that none has
	until   time.Time          // when it is to be asked for again
}

// master is a server of a cluster that has slots, or a shard.
type master struct {
	number   int // which it keeps as long as it has slots
	addr, id string
	client   rueidis.Client // of this server alone: it follows no redirection
	support  *batchSupport  // of batches for several slots
	endpoint *endpoint      // of a shard, whose name is addr; nil in a cluster
}

// topologyCache is the present topology of a Store, and when it is refreshed. The zero value is an
// unknown topology.
type topologyCache struct {
	current    atomic.Pointer[topology]
	next       atomic.Int64 // in ns: not asked for again before
	refreshing atomic.Bool
}

const (
	topologyPause   = 200 * time.Millisecond // between two requests for the topology
	topologyTTL     = 5 * time.Second        // after which it is asked for again
	topologyTimeout = time.Second            // in which a server has to answer
)

// owner returns the master that has a slot, or nil if that is not known.
func (s *Store) owner(slot uint16, now time.Time) *master {
	t := s.topology.current.Load()
	if t == nil || now.After(t.until) || t.owners[slot] == nil {
		s.refreshTopology()
	}
	if t == nil {
		return nil
	}
	return t.owners[slot]
}

// batchOwner returns the master that has a key, if it is known and supports batches. A shard
// does, unless the key has moved to it: two servers decide about that.
func (s *Store) batchOwner(key string) *master {
	now := time.Now()
	m := s.owner(slotOfKey(key), now)
	switch {
	case m == nil || s.formerOf(key) != nil:
		return nil
	case m.endpoint != nil:
		return m
	}
	switch m.support.now(now) {
	case supported:
		return m
	case supportUnknown:
		s.refreshTopology()
	}
	return nil
}

// refreshTopology asks for the topology in the background, because it is unknown or may have
// changed.
func (s *Store) refreshTopology() {
	if !s.cluster || time.Now().UnixNano() < s.topology.next.Load() || !s.topology.refreshing.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.topology.refreshing.Store(false)
		s.fetchTopology()
		s.topology.next.Store(time.Now().Add(topologyPause).UnixNano())
	}()
}

// fetchTopology asks all servers for the topology, takes the first answer, and finds out which
// masters support batches.
func (s *Store) fetchTopology() {
	ctx, end := context.WithTimeout(context.Background(), topologyTimeout)
	client, err := s.endpoints[0].client.get(ctx)
	end()
	if err != nil {
		return
	}
	nodes := client.Nodes()
	reported := make(chan *topology, len(nodes))
	for addr, node := range nodes {
		go func() {
			t, _ := queryTopology(addr, node)
			reported <- t
		}()
	}
	for range nodes {
		t := <-reported
		if t == nil {
			continue
		}
		before := s.topology.current.Load()
		t.adopt(nodes, before)
		t.enumerate(before)
		t.until = time.Now().Add(topologyTTL)
		s.topology.current.Store(t)
		s.probe(t)
		return
	}
}

// queryTopology asks the server at addr which masters have which slots.
func queryTopology(addr string, client rueidis.Client) (*topology, error) {
	ctx, end := context.WithTimeout(context.Background(), topologyTimeout)
	defer end()
	ranges, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, err
	}
	t := new(topology)
	for _, r := range ranges {
		if err := t.add(r, addr); err != nil {
			return nil, err
		}
	}
	return t, nil
}

var errTopology = errors.New("the answer to CLUSTER SLOTS cannot be read")

// add notes a range of slots. r is its first and last slot, then the servers that have it,
// the master first.
func (t *topology) add(r rueidis.RedisMessage, from string) error {
	fields, err := r.ToArray()
	if err != nil || len(fields) < 3 {
		return errTopology
	}
	first, err1 := fields[0].AsInt64()
	last, err2 := fields[1].AsInt64()
	server, err3 := fields[2].ToArray()
	if err := errors.Join(err1, err2, err3); err != nil || first < 0 || last >= slotCount || len(server) < 3 {
		return errTopology
	}
	host, _ := server[0].ToString() // null means the server that was asked
	port, err := server[1].AsInt64()
	id, err2 := server[2].ToString()
	if err != nil || err2 != nil {
		return errTopology
	}
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	m := t.master(net.JoinHostPort(host, strconv.FormatInt(port, 10)), id)
	for slot := first; slot <= last; slot++ {
		t.owners[slot] = m
	}
	return nil
}

func (t *topology) master(addr, id string) *master {
	for _, m := range t.masters {
		if m.addr == addr && m.id == id {
			return m
		}
	}
	m := &master{addr: addr, id: id, support: new(batchSupport)}
	t.masters = append(t.masters, m)
	return m
}

// adopt gives masters their clients, and the support of batches that was found before,
// unless they were alone then: that probe had no key of another master to try. A master that
// the client does not know by its address is sent no batches.
func (t *topology) adopt(nodes map[string]rueidis.Client, before *topology) {
	for _, m := range t.masters {
		if m.client = nodes[m.addr]; m.client == nil {
			m.support.set(unsupported, recheckLater)
			continue
		}
		if before == nil || len(before.masters) == 1 && len(t.masters) > 1 {
			continue
		}
		for _, old := range before.masters {
			if old.addr == m.addr && old.id == m.id && old.client != nil {
				m.support = old.support
			}
		}
	}
}

// enumerate gives masters the numbers they had before, and new ones those that are free.
func (t *topology) enumerate(before *topology) {
	var names []string
	if before != nil {
		names = slices.Clone(before.names)
	}
	for i, name := range names {
		if !slices.ContainsFunc(t.masters, func(m *master) bool { return m.addr == name }) {
			names[i] = ""
		}
	}
	for _, m := range t.masters {
		if m.number = slices.Index(names, m.addr); m.number < 0 {
			if m.number = slices.Index(names, ""); m.number < 0 {
				m.number, names = len(names), append(names, "")
			}
			names[m.number] = m.addr
		}
	}
	t.names = names
	if before != nil && t.same(before) {
		t.names = before.names
	}
}

// same reports whether every slot is where it was before.
func (t *topology) same(before *topology) bool {
	if !slices.Equal(t.names, before.names) {
		return false
	}
	for i, m := range t.owners {
		if old := before.owners[i]; (m == nil) != (old == nil) || m != nil && m.number != old.number {
			return false
		}
	}
	return true
}

// probe finds out whether masters support batches, if that is not known.
func (s *Store) probe(t *topology) {
	var all sync.WaitGroup
	for _, m := range t.masters {
		if m.client != nil && m.support.now(time.Now()) == supportUnknown {
			all.Go(func() { s.probeMaster(t, m) })
		}
	}
	all.Wait()
}
