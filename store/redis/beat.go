package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The roll of who shares the counters is under the key PREFIX:nodes. No counter has
// that key, since theirs have braces.

func (s *Store) roll() string { return s.prefix + ":nodes" }

// Beat says that id is there, and will be for ttl unless it says so again. It returns
// how many are, this one included, all by Redis' clock.
func (s inside) Beat(ctx context.Context, id string, ttl time.Duration) (live int, err error) {
	if id == "" || ttl < time.Millisecond {
		return 0, fmt.Errorf("redis: Beat(%q, %s): %w", id, ttl, errBeat)
	}
	of := s.tag()
	var head packer
	head.number(float64(of))
	ms := strconv.FormatInt(ttl.Milliseconds(), 10)
	got, err := s.numbers(ctx, beatScript(), []string{s.roll()}, []string{string(head), id, ms}, of)
	if err == nil && (len(got) != 1 || got[0] < 1 || got[0] > maxNodes) {
		err = nonsense("%d live instances", got)
	}
	if err != nil {
		return 0, s.failure("beat", err)
	}
	return int(got[0]), nil
}

// maxNodes is more than ever share counters.
const maxNodes = 1 << 20

// Leave says that id is there no longer.
func (s inside) Leave(ctx context.Context, id string) error {
	client, err := s.link.get(ctx)
	if err == nil {
		err = client.Do(ctx, client.B().Zrem().Key(s.roll()).Member(id).Build()).Error()
	}
	return s.failure("leave", err)
}

var errBeat = errors.New("want a name, and a time of at least a millisecond")
