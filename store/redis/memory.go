package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

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

// Memory asks the server, or every master of a cluster, about its memory. The user must be
// allowed to run INFO. Servers that do not answer are missing; the error is theirs.
func (s *Store) Memory(ctx context.Context) ([]Memory, error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	client, err := s.client.get(ctx)
	if err != nil {
		return nil, s.failure("memory", err)
	}
	if !s.cluster {
		m, err := memoryOf(ctx, client, singleName[0])
		if err != nil {
			return nil, s.failure("memory", err)
		}
		return []Memory{m}, nil
	}
	t := s.topology.current.Load()
	if t == nil {
		s.refreshTopology()
		return nil, nil
	}
	var (
		asked sync.WaitGroup
		mu    sync.Mutex // guards all and wrong
		all   []Memory
		wrong error
	)
	for _, master := range t.masters {
		if master.client == nil {
			continue
		}
		asked.Go(func() {
			m, err := memoryOf(ctx, master.client, master.addr)
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
	return all, s.failure("memory", wrong)
}

func memoryOf(ctx context.Context, client rueidis.Client, server string) (m Memory, err error) {
	m.Server = server
	for _, section := range []string{"memory", "stats"} {
		info, err := client.Do(ctx, client.B().Info().Section(section).Build()).ToString()
		if err != nil {
			return m, err
		}
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch name {
			case "maxmemory_policy":
				m.Policy = value
			case "maxmemory":
				m.Max, _ = strconv.ParseInt(value, 10, 64)
			case "evicted_keys":
				m.Evicted, _ = strconv.ParseInt(value, 10, 64)
			}
		}
	}
	return m, nil
}
