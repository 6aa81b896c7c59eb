package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// The roll of who shares the counters is under the key PREFIX:nodes. No counter has
// that key, since theirs have braces.

//go:embed script/beat.lua
var beatText string

var beatScript = rueidis.NewLuaScript(beatText)

func (s *Store) roll() string { return s.prefix + ":nodes" }

// Beat says that id is there, and will be for ttl unless it says so again. It returns
// how many are, this one included, all by Redis' clock.
func (s *Store) Beat(ctx context.Context, id string, ttl time.Duration) (live int, err error) {
	if id == "" || ttl < time.Millisecond {
		return 0, fmt.Errorf("redis: Beat(%q, %s): %w", id, ttl, errBeat)
	}
	client, err := s.link.get(ctx)
	if err != nil {
		return 0, failure("beat", err)
	}
	ms := strconv.FormatInt(ttl.Milliseconds(), 10)
	n, err := beatScript.Exec(ctx, client, []string{s.roll()}, []string{id, ms}).AsInt64()
	return int(n), failure("beat", err)
}

// Leave says that id is there no longer.
func (s *Store) Leave(ctx context.Context, id string) error {
	client, err := s.link.get(ctx)
	if err == nil {
		err = client.Do(ctx, client.B().Zrem().Key(s.roll()).Member(id).Build()).Error()
	}
	return failure("leave", err)
}

var errBeat = errors.New("want a name, and a time of at least a millisecond")
