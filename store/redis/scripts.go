package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate/internal/chain"
)

var _ chain.Scripts = fleetStore{}

// Run implements chain.Scripts.
func (s fleetStore) Run(ctx context.Context, what string, sc *chain.Script, keys []string, args ...string) ([]string, error) {
	t := fleetTable{s.Store, s.home(keys[0])}
	text, err := t.run(ctx, what, &script{text: sc.Text, sha: sc.SHA}, keys, args...)
	if err != nil {
		return nil, err
	}
	var all []string
	for len(text.rest) > 0 && !text.broken {
		all = append(all, text.take(text.number()))
	}
	if text.broken {
		return nil, failure(what, invalidReply("texts that break off"))
	}
	return all, nil
}

// Home implements chain.Scripts.
func (s fleetStore) Home(key string) string {
	names := s.Servers()
	if s.apart() {
		if m := s.owner(slotOfKey(key), time.Now()); m != nil && m.number < len(names) {
			return names[m.number]
		}
	}
	return names[0]
}

// Prefix implements chain.Scripts.
func (s fleetStore) Prefix() string { return s.prefix }

// Durability implements chain.Scripts. In a cluster every node is asked, as any replica may be a
// master soon.
func (s fleetStore) Durability(ctx context.Context) (all []chain.Durability, err error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	for _, e := range s.endpoints[:max(s.shards, 1)] {
		client, err := e.client.get(ctx)
		if err != nil {
			return nil, s.failure("ask for settings", e.failed(err))
		}
		nodes := map[string]rueidis.Client{cmp.Or(e.name, singleName[0]): client}
		if s.cluster {
			nodes = client.Nodes()
		}
		for name, node := range nodes {
			d, err := durabilityOf(ctx, node)
			if err != nil {
				return nil, s.failure("ask for settings", e.failed(err))
			}
			d.Server = name
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b chain.Durability) int { return strings.Compare(a.Server, b.Server) })
	return all, nil
}

// durabilityOf asks one server: INFO tells most, and CONFIG, which may be forbidden, the rest.
func durabilityOf(ctx context.Context, client rueidis.Client) (d chain.Durability, err error) {
	text, err := client.Do(ctx, client.B().Info().Build()).ToString()
	if err != nil {
		return d, err
	}
	d.Policy = readInfo(text).Policy
	d.AOF = strings.Contains(text, "\naof_enabled:1")
	set, err := client.Do(ctx, client.B().ConfigGet().Parameter("appendfsync").Build()).AsStrMap()
	var refused *rueidis.RedisError
	if errors.As(err, &refused) {
		return d, nil
	}
	d.Fsync = set["appendfsync"]
	return d, err
}
