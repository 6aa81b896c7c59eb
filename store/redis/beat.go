package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The roll of who shares the counters is under the key PREFIX:nodes. No counter has
// that key, since theirs have :{. In a cluster every master has a roll, the others under
// PREFIX:nodes{NUMBER}: whoever is on one that answers is counted, whatever became of the
// rest.

func (s *Store) roll() string { return s.prefix + ":nodes" }

// maxRolls is how many masters have a roll.
const maxRolls = 64

// rolls are the keys of all rolls, by the name of their server; that of a lone one is "".
func (s *Store) rolls() map[string]string {
	t := s.chart.now.Load()
	if t == nil || len(t.masters) < 2 {
		return map[string]string{"": s.roll()}
	}
	rolls := make(map[string]string)
	note := func(key string) {
		if m := t.owners[slotOfKey(key)]; m != nil && rolls[m.addr] == "" {
			rolls[m.addr] = key
		}
	}
	note(s.roll()) // which is the only one that older versions know
	want := min(len(t.masters), maxRolls)
	for i := 0; len(rolls) < want && i < slotCount; i++ {
		note(s.roll() + "{" + strconv.Itoa(i) + "}")
	}
	return rolls
}

// Beat says that id is there, and will be for ttl unless it says so again. It returns
// how many are, this one included, all by Redis' clock. In a cluster there may be both a
// number and an error, which says what masters have not answered: its method Servers has
// their names.
func (s inside) Beat(ctx context.Context, id string, ttl time.Duration) (live int, err error) {
	if id == "" || ttl < time.Millisecond {
		return 0, fmt.Errorf("redis: Beat(%q, %s): %w", id, ttl, errBeat)
	}
	rolls := s.rolls()
	if len(rolls) == 1 {
		for _, key := range rolls {
			live, err = s.beatAt(ctx, key, id, ttl)
		}
		if s.cluster {
			s.survey()
		}
		return live, s.failure("beat", err)
	}
	if end, ok := ctx.Deadline(); ok { // whoever asks has to hear of those that do answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	var most atomic.Int64 // of those that count after this is over, too
	missed := silent{}
	s.eachRoll(ctx, rolls, func(ctx context.Context, server, key string) error {
		n, err := s.beatAt(ctx, key, id, ttl)
		for was := most.Load(); int64(n) > was && !most.CompareAndSwap(was, int64(n)); {
			was = most.Load()
		}
		return err
	}, missed)
	live = int(most.Load())
	if len(missed) == 0 {
		return live, nil
	}
	s.survey()
	for name, err := range missed {
		missed[name] = s.failure("beat", err)
	}
	return live, missed
}

// eachRoll calls do for every roll at the same time, and notes in missed what became of
// those that failed. One that has not returned from the time before is not called again.
func (s *Store) eachRoll(ctx context.Context, rolls map[string]string, do func(ctx context.Context, server, key string) error, missed silent) {
	type end struct {
		server string
		err    error
	}
	ends := make(chan end, len(rolls))
	out := 0
	for server, key := range rolls {
		missed[server] = errSilent
		if _, busy := s.beating.LoadOrStore(server, true); busy {
			continue
		}
		out++
		go func() {
			err := do(ctx, server, key)
			s.beating.Delete(server)
			ends <- end{server, err}
		}()
	}
	for range out {
		select {
		case e := <-ends:
			if missed[e.server] = e.err; e.err == nil {
				delete(missed, e.server)
			}
		case <-ctx.Done():
			return
		}
	}
}

// silent is servers that did not answer, and why.
type silent map[string]error

func (s silent) Error() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fmt.Sprintf("%s: %v", name, s[name]))
	}
	return strings.Join(all, "; ")
}

func (s silent) Unwrap() []error { return slices.Collect(maps.Values(s)) }

// Servers are those that did not answer, and why.
func (s silent) Servers() map[string]error { return s }

var errSilent = errors.New("no answer in time")

func (s *Store) beatAt(ctx context.Context, key, id string, ttl time.Duration) (live int, err error) {
	of := s.tag()
	var head packer
	head.number(float64(of))
	ms := strconv.FormatInt(ttl.Milliseconds(), 10)
	got, err := s.numbers(ctx, beatScript(), []string{key}, []string{string(head), id, ms}, of)
	if err == nil && (len(got) != 1 || got[0] < 1 || got[0] > maxNodes) {
		err = nonsense("%d live instances", got)
	}
	if err != nil {
		return 0, err
	}
	return int(got[0]), nil
}

// maxNodes is more than ever share counters.
const maxNodes = 1 << 20

// Leave says that id is there no longer.
func (s inside) Leave(ctx context.Context, id string) error {
	client, err := s.link.get(ctx)
	if err != nil {
		return s.failure("leave", err)
	}
	missed := silent{}
	s.eachRoll(ctx, s.rolls(), func(ctx context.Context, _, key string) error {
		return client.Do(ctx, client.B().Zrem().Key(key).Member(id).Build()).Error()
	}, missed)
	if len(missed) == 0 {
		return nil
	}
	return s.failure("leave", missed)
}

var errBeat = errors.New("want a name, and a time of at least a millisecond")
