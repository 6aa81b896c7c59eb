package redis

import (
	"context"
	"iter"

	"github.com/redis/rueidis"
)

// scanCount is how many keys Redis looks at per call.
const scanCount = 1000

// Keys lists the keys of all counters, or of one rule if its name is not "". Redis keeps
// working meanwhile: a key that appears or expires then may be listed once, twice or not.
func (s *Store) Keys(ctx context.Context, rule string) iter.Seq2[Key, error] {
	match := s.prefix + ":*"
	if rule != "" {
		match = s.prefix + ":" + escape(rule) + ":{*"
	}
	return func(yield func(Key, error) bool) {
		for _, e := range s.endpoints[:max(s.shards, 1)] {
			if more := s.keysAt(ctx, e, match, yield); !more {
				return
			}
		}
	}
}

// keysAt lists the keys that live at an endpoint. A shard may also have keys that have moved.
func (s *Store) keysAt(ctx context.Context, e *endpoint, match string, yield func(Key, error) bool) (more bool) {
	client, err := e.client.get(ctx)
	if err != nil {
		return yield(Key{}, s.failure("keys", e.failed(err)))
	}
	for _, node := range client.Nodes() {
		if !isMaster(ctx, node) {
			continue
		}
		more := s.scan(ctx, node, match, func(k Key, err error) bool {
			return err == nil && s.home(k.Name) != e || yield(k, err)
		})
		if !more {
			return false
		}
	}
	return true
}

// isMaster reports whether node is no replica, which would have the same keys as its master. It is true
// of a server that does not say.
func isMaster(ctx context.Context, node rueidis.Client) bool {
	role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
	if err != nil || len(role) == 0 {
		return true
	}
	word, err := role[0].ToString()
	return err != nil || word == "master"
}

// scan goes through one node, until yield says that it is enough.
func (s *Store) scan(ctx context.Context, node rueidis.Client, match string, yield func(Key, error) bool) (more bool) {
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(match).Count(scanCount).Build()).AsScanEntry()
		if err != nil {
			return yield(Key{}, s.failure("keys", err))
		}
		for _, name := range page.Elements {
			if k, ok := parseKey(s.prefix, name); ok && !yield(k, nil) {
				return false
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return true
		}
	}
}
