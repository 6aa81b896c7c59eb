package redis

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Memory is what a server reports about its memory.
type Memory struct {
	Server string // its address in a cluster, the name of a shard, otherwise "Redis"
	// Policy is its maxmemory-policy, such as noeviction; Max its maxmemory in bytes, 0
	// if it has none.
	Policy string
	Max    int64
	// Evicted is how many keys it has evicted since it was started, of whatever prefix.
	Evicted int64
}

// MayEvict reports whether the server drops counters when its memory is full. Every policy
// but noeviction does, because all counters have a time to live.
func (m *Memory) MayEvict() bool { return m.Max > 0 && m.Policy != "noeviction" }

// Info is what a server reports about itself.
type Info struct {
	Memory
	Used       int64         // bytes of memory
	CPU        time.Duration // since it was started, of all its threads
	Clients    int64         // connections, of whomever
	MaxClients int64         // maxclients; 0 if it does not say, as before Redis 6.2
	Keys       int64         // in all databases
}

// Info asks the server, every master of a cluster or every shard about itself. The user must
// be allowed to run INFO. Servers that do not answer are missing; the error is theirs. While the masters
// of a cluster are not known yet, it returns nothing, and no error.
func (s *Store) Info(ctx context.Context) ([]Info, error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	var (
		asked sync.WaitGroup
		mu    sync.Mutex // guards all and wrong
		all   []Info
		wrong error
	)
	for _, ask := range s.infoAsks(ctx) {
		asked.Go(func() {
			m, err := ask()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				wrong = errors.Join(wrong, err)
				return
			}
			all = append(all, m)
		})
	}
	asked.Wait()
	return all, s.failure("info", wrong)
}

// infoAsks returns functions that ask the servers.
func (s *Store) infoAsks(ctx context.Context) (asks []func() (Info, error)) {
	if s.cluster {
		t := s.topology.current.Load()
		if t == nil {
			s.refreshTopology()
			return nil
		}
		for _, m := range t.masters {
			if m.client != nil {
				asks = append(asks, func() (Info, error) { return infoOf(ctx, m.client, m.addr) })
			}
		}
		return asks
	}
	for _, e := range s.endpoints[:max(s.shards, 1)] {
		asks = append(asks, func() (Info, error) {
			client, err := e.client.get(ctx)
			if err != nil {
				return Info{}, e.failed(err)
			}
			m, err := infoOf(ctx, client, cmp.Or(e.name, singleName[0]))
			return m, e.failed(err)
		})
	}
	return asks
}

// infoOf asks for all that a server shows by default: sections of one's choice, several at
// once, are of Redis 7.
func infoOf(ctx context.Context, client rueidis.Client, server string) (m Info, err error) {
	text, err := client.Do(ctx, client.B().Info().Build()).ToString()
	m = readInfo(text)
	m.Server = server
	return m, err
}

// readInfo reads what is known of the answer; what a server does not say is 0.
func readInfo(text string) (m Info) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "maxmemory_policy":
			m.Policy = value
		case "maxmemory":
			m.Max = count(value)
		case "used_memory":
			m.Used = count(value)
		case "evicted_keys":
			m.Evicted = count(value)
		case "connected_clients":
			m.Clients = count(value)
		case "maxclients":
			m.MaxClients = count(value)
		case "used_cpu_sys", "used_cpu_user":
			if took, err := strconv.ParseFloat(value, 64); err == nil && took >= 0 && took < 1e9 {
				m.CPU += time.Duration(took * float64(time.Second))
			}
		default:
			if keys, ok := strings.CutPrefix(value, "keys="); ok && strings.HasPrefix(name, "db") {
				keys, _, _ = strings.Cut(keys, ",")
				m.Keys += count(keys)
			}
		}
	}
	return m
}

// count reads a number of things. It returns 0 if value is not a number, or below 0.
func count(value string) int64 {
	n, _ := strconv.ParseInt(value, 10, 64)
	return max(n, 0)
}
