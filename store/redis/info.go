package redis

import (
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
	Server string // its address in a cluster, otherwise "Redis"
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

// Memory asks the server, or every master of a cluster, about its memory; see [Store.Info].
func (s *Store) Memory(ctx context.Context) (all []Memory, err error) {
	info, err := s.Info(ctx)
	for i := range info {
		all = append(all, info[i].Memory)
	}
	return all, err
}

// Info asks the server, or every master of a cluster, about itself. The user must be
// allowed to run INFO. Servers that do not answer are missing; the error is theirs.
func (s *Store) Info(ctx context.Context) ([]Info, error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	client, err := s.client.get(ctx)
	if err != nil {
		return nil, s.failure("info", err)
	}
	if !s.cluster {
		m, err := infoOf(ctx, client, singleName[0])
		if err != nil {
			return nil, s.failure("info", err)
		}
		return []Info{m}, nil
	}
	t := s.topology.current.Load()
	if t == nil {
		s.refreshTopology()
		return nil, nil
	}
	var (
		asked sync.WaitGroup
		mu    sync.Mutex // guards all and wrong
		all   []Info
		wrong error
	)
	for _, master := range t.masters {
		if master.client == nil {
			continue
		}
		asked.Go(func() {
			m, err := infoOf(ctx, master.client, master.addr)
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

// count reads a number of things; it is 0 if it is not one.
func count(value string) int64 {
	n, _ := strconv.ParseInt(value, 10, 64)
	return max(n, 0)
}
