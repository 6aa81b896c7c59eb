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

// topology is which master of a cluster has which slots, as far as this process has heard.
// The client has such a table itself and shows it to nobody. Ours says who gets a batch, and
// may be out of date: whoever is asked about a key of another master says so.
type topology struct {
	masters []*master
	owners  [slotCount]*master // nil: nobody is known
	names   []string           // of masters by number, "" for a number that none has
	until   time.Time          // when it is to be asked for again
}

// master is a server of a cluster that has slots.
type master struct {
	number   int // which it keeps as long as it has slots
	addr, id string
	client   rueidis.Client // of this server alone: it follows no redirection
	able     *ability
}

// chart is the present topology of a Store, and how it is found. The zero value knows nothing.
type chart struct {
	now       atomic.Pointer[topology]
	next      atomic.Int64 // in ns: not asked again before
	surveying atomic.Bool
}

const (
	chartPause = 200 * time.Millisecond // between two times that the topology is asked for
	chartTime  = 5 * time.Second        // for which it is believed while nothing speaks against it
	surveyTime = time.Second            // that one server may take to tell it
)

// owner is the master that has a slot; nil: that is not known.
func (s *Store) owner(slot uint16, now time.Time) *master {
	t := s.chart.now.Load()
	if t == nil || now.After(t.until) || t.owners[slot] == nil {
		s.survey()
	}
	if t == nil {
		return nil
	}
	return t.owners[slot]
}

// batchOwner is the master that has a key, if that is known and batches can be sent to it.
func (s *Store) batchOwner(key string) *master {
	now := time.Now()
	m := s.owner(slotOfKey(key), now)
	if m == nil {
		return nil
	}
	switch m.able.now(now) {
	case able:
		return m
	case unknown:
		s.survey()
	}
	return nil
}

// survey has the topology asked for, at some time soon: something has changed, or nothing
// is known yet.
func (s *Store) survey() {
	if !s.cluster || time.Now().UnixNano() < s.chart.next.Load() || !s.chart.surveying.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.chart.surveying.Store(false)
		s.look()
		s.chart.next.Store(time.Now().Add(chartPause).UnixNano())
	}()
}

// look asks the servers for the topology, takes it from the first that tells it, and finds
// out which masters can be sent batches.
func (s *Store) look() {
	ctx, end := context.WithTimeout(context.Background(), surveyTime)
	client, err := s.link.get(ctx)
	end()
	if err != nil {
		return
	}
	nodes := client.Nodes()
	told := make(chan *topology, len(nodes))
	for addr, node := range nodes {
		go func() {
			t, _ := askTopology(addr, node)
			told <- t
		}()
	}
	for range nodes {
		t := <-told
		if t == nil {
			continue
		}
		before := s.chart.now.Load()
		t.join(nodes, before)
		t.enumerate(before)
		t.until = time.Now().Add(chartTime)
		s.chart.now.Store(t)
		s.probe(t)
		return
	}
}

// askTopology asks the server at addr who has which slots.
func askTopology(addr string, client rueidis.Client) (*topology, error) {
	ctx, end := context.WithTimeout(context.Background(), surveyTime)
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

// add notes a range of slots: its first and last, then who has it, the master first.
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
	host, _ := server[0].ToString() // null: the one that was asked
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
	m := &master{addr: addr, id: id, able: new(ability)}
	t.masters = append(t.masters, m)
	return m
}

// join gives masters their clients, and what was known of them before, unless there was no
// other then whose keys they could have been found not to take. One that the client does not
// know by that address is sent no batches.
func (t *topology) join(nodes map[string]rueidis.Client, before *topology) {
	for _, m := range t.masters {
		if m.client = nodes[m.addr]; m.client == nil {
			m.able.set(unable, retryAble)
			continue
		}
		if before == nil || len(before.masters) == 1 && len(t.masters) > 1 {
			continue
		}
		for _, old := range before.masters {
			if old.addr == m.addr && old.id == m.id && old.client != nil {
				m.able = old.able
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

// probe finds out of every master that it is not known of whether it can be sent batches.
func (s *Store) probe(t *topology) {
	var all sync.WaitGroup
	for _, m := range t.masters {
		if m.client != nil && m.able.now(time.Now()) == unknown {
			all.Go(func() { s.probeMaster(t, m) })
		}
	}
	all.Wait()
}
