package redis

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

//go:embed testdata/format1/bucket.lua
var format1Script string

// format1 is a node that keeps buckets in their first format, and takes more than the
// largest capacity it knows of for a clock that was set back.
type format1 struct {
	*Store
	script *script
	widest map[string]int64 // by identity
}

// Undated implements storetest.Undated.
func (f *format1) Undated() {}

func newFormat1(s *Store) *format1 {
	sum := sha1.Sum([]byte(format1Script))
	return &format1{s, &script{format1Script, hex.EncodeToString(sum[:])}, map[string]int64{}}
}

func (f *format1) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	c := checks[0]
	lim, err := f.compile(c.Limit)
	if err != nil || lim.kind != buckets {
		return f.Store.Take(ctx, checks, n)
	}
	identity := c.Limit.Identity()
	f.widest[identity] = max(f.widest[identity], lim.capacity)
	tag := f.tag()
	var head, ask packer
	head.number(float64(tag))
	head.number(f.clock.pretended())
	head.int(int64(n))
	head.uint16(0)
	ask.byte(byte(lim.kind))
	ask.byte(0)
	ask.uint16(1)
	ask.text(lim.id)
	ask.int(c.Cost)
	ask.int(lim.bucket.Em)
	ask.int(lim.bucket.Cap)
	ask.int(f.widest[identity])
	ask.byte(flag(lim.bucket.Leaky))
	ask.ticks(min(algo.Ticks(c.MaxWait), lim.longest))
	got, err := f.endpoints[0].runNumbers(ctx, f.script, []string{lim.name(c.Key)}, []string{string(head), string(ask)}, tag)
	if err != nil {
		return tidegate.Decision{}, err
	}
	d := tidegate.Decision{OK: got[0] > 0, Limit: c.Limit, Granted: got[0], Remaining: got[4], Receipt: tidegate.Receipt{At: got[1] * algo.Micro}}
	d.Never = !d.OK && max(c.Cost, 1) > lim.capacity
	// As a Store tells it: in whole microseconds, rounded up.
	up := func(us, ticks int64) time.Duration {
		return time.Duration(us+(ticks+algo.Micro-1)/algo.Micro) * time.Microsecond
	}
	d.ResetAfter = up(got[5], got[6])
	switch {
	case d.OK:
		d.Wait = up(got[7], got[8])
	case !d.Never:
		d.RetryAfter = up(got[7], got[8])
	}
	return d, nil
}

// A node that keeps the first format beside one of today, which are asked in any order:
// what holds of two of today holds.
func TestRolloutBesideFormat1(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	storetest.RunRollout(t, func(t *testing.T, now func() time.Time) []tidegate.Store {
		c := Config{Addrs: []string{server.Socket}, pretend: now}
		s := openTest(t, c)
		return []tidegate.Store{s, newFormat1(beside(t, s, c))}
	}, storetest.Brief())
}
