package redis

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/lang/redisurl"
)

// Shards are servers that know nothing of each other. A key has a slot, as in a Redis
// Cluster, and the slot a shard: the one whose name ranks highest for it (rendezvous hashing).
// So a Store has a topology that never changes, and decides about several servers as in a
// cluster. What differs: every shard has a client of its own, its scripts may use keys of all
// its slots, and its list of nodes has the same key everywhere.

// Shard is one of several servers that counters are spread over.
type Shard struct {
	// Name decides which keys live there, and is what metrics, the log and the health page
	// call it. It stays when the server moves to another address.
	Name string
	// URL is as in Config.URL: of a single server or of Sentinels, not of a cluster.
	URL string
}

// CheckShards reports what is wrong with Config.Shards and Config.Was. It neither connects
// nor reads the files that URLs name.
func CheckShards(shards, was []Shard) error {
	return redisurl.CheckShards(asURLs(shards), asURLs(was))
}

func asURLs(shards []Shard) []redisurl.Shard {
	all := make([]redisurl.Shard, len(shards))
	for i, s := range shards {
		all[i] = redisurl.Shard(s)
	}
	return all
}

// completeShards returns the configuration of each shard, and of those that were.
func (c *Config) completeShards() (shards, was []Config, err error) {
	if c.URL != "" || len(c.Addrs) > 0 {
		return nil, nil, redisurl.ErrBoth
	}
	if err := CheckShards(c.Shards, c.Was); err != nil {
		return nil, nil, err
	}
	one := func(s Shard) (Config, error) {
		own := *c
		own.URL, own.Shards, own.Was = s.URL, nil, nil
		if err := own.complete(); err != nil {
			return own, fmt.Errorf("shard %s: %w", s.Name, err)
		}
		return own, nil
	}
	for _, s := range c.Shards {
		own, err := one(s)
		if err != nil {
			return nil, nil, err
		}
		shards = append(shards, own)
	}
	for _, s := range c.Was {
		i := slices.IndexFunc(c.Shards, func(now Shard) bool { return now.Name == s.Name })
		if i >= 0 {
			was = append(was, shards[i])
			continue
		}
		own, err := one(s)
		if err != nil {
			return nil, nil, err
		}
		was = append(was, own)
	}
	*c = Config{Prefix: shards[0].Prefix, Deadline: shards[0].Deadline, Shards: c.Shards, Was: c.Was, pretend: c.pretend, node: c.node}
	return shards, was, nil
}

// openShards makes the endpoints and the topology.
func (s *Store) openShards(c *Config, shards, was []Config) {
	s.shards = len(shards)
	present := make(map[string]*endpoint)
	for i := range shards {
		e := newEndpoint(c.Shards[i].Name, &shards[i])
		present[e.name] = e
		s.endpoints = append(s.endpoints, e)
	}
	s.topology.current.Store(shardTopology(s.endpoints))
	if len(was) == 0 {
		return
	}
	for i := range was {
		e := present[c.Was[i].Name]
		if e == nil {
			e = newEndpoint(c.Was[i].Name, &was[i])
			s.endpoints = append(s.endpoints, e)
		}
		s.was = append(s.was, e)
	}
	s.former = formerOwners(s.topology.current.Load(), s.was)
}

// shardTopology returns the topology of shards, numbered by their names: the order of a list makes
// no difference.
func shardTopology(shards []*endpoint) *topology {
	t := &topology{until: time.Now().AddDate(100, 0, 0)}
	for _, e := range byName(shards) {
		t.masters = append(t.masters, &master{number: len(t.masters), addr: e.name, endpoint: e})
		t.names = append(t.names, e.name)
	}
	for slot, i := range rendezvous(t.names) {
		t.owners[slot] = t.masters[i]
	}
	return t
}

// byName returns endpoints in the order of their names.
func byName(all []*endpoint) []*endpoint {
	return slices.SortedFunc(slices.Values(all), func(a, b *endpoint) int { return cmp.Compare(a.name, b.name) })
}

// rendezvous returns the index of the name that each slot belongs to: the one with the highest
// rank. When a name is added, slots move to it alone; when one is removed, its slots alone
// move. Gateways and programs must agree on this, of whatever version.
func rendezvous(names []string) (owners [slotCount]int) {
	var seeds []uint64
	for _, name := range names {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name)) // never fails
		seeds = append(seeds, h.Sum64())
	}
	for slot := range owners {
		best, highest := 0, uint64(0)
		for i, seed := range seeds {
			r := mix(seed + uint64(slot+1)*0x9E3779B97F4A7C15)
			if i == 0 || r > highest || r == highest && names[i] < names[best] {
				best, highest = i, r
			}
		}
		owners[slot] = best
	}
	return owners
}

// mix is the finalizer of SplitMix64: every bit of x changes half of the bits of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
