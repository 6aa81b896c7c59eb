package split

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/registry"
)

// paper is a list in memory: Redis does not live in virtual time.
type paper struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (p *paper) Beat(_ context.Context, h chain.Heartbeat) (r chain.Roster, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Listed = time.Now().Before(p.until[h.ID])
	p.until[h.ID] = time.Now().Add(h.TTL)
	for id, until := range p.until {
		if time.Now().Before(until) {
			if r.Live++; id < h.ID {
				r.Rank++
			}
		}
	}
	return r, nil
}

func (p *paper) Leave(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, id)
	return nil
}

// beating is an instance that counts the others by heartbeats.
type beating struct {
	*Store
	*registry.Registry
}

// 1,000/s on five instances that become two, and then seven: the total is within 5 % of the
// limit from one heartbeat after each change on.
func TestFiveTwoSevenByHeartbeats(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Burst: 20}, // with more, what was not used for a while is made up for
		{Algorithm: tidegate.TokenBucket, Burst: 50},
		{Algorithm: tidegate.FixedWindow},
	} {
		for _, offered := range []int{1100, 1500, 3000} {
			synctest.Test(t, func(t *testing.T) {
				spec.Events, spec.Period = 1000, time.Second
				l := limitOf(spec)
				p := &paper{until: map[string]time.Time{}}
				var all []*beating
				join := func(n int) {
					for range n {
						r := registry.New(p, registry.Options{})
						all = append(all, &beating{New(noStore{t: t}, Options{Members: r.Membership, LocalBytes: 1 << 20}), r})
						r.Join()
					}
					synctest.Wait()
				}
				asked := 0
				second := func() (admitted int) {
					for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Second / time.Duration(offered)) {
						asked++
						d, err := all[asked%len(all)].Take(ctx, []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}, 1)
						if err != nil {
							t.Fatal(err)
						}
						if d.OK {
							admitted++
						}
					}
					return admitted
				}
				least, most := 1000, 1000
				measure := func() {
					for range 5 {
						n := second()
						least, most = min(least, n), max(most, n)
					}
				}
				heartbeat := func() {
					for range int(registry.DefaultEvery / time.Second) {
						second()
					}
				}
				join(5)
				for range 15 { // the list has been whole for a while
					second()
				}
				measure()
				for range 3 {
					all[0].Close()
					all = all[1:]
				}
				heartbeat()
				measure()
				join(5)
				heartbeat()
				measure()
				if least < 950 || most > 1050 {
					t.Errorf("%s, %d offered: %d to %d in a second", l, offered, least, most)
				}
				t.Logf("%s, %d offered: %d to %d in a second", l, offered, least, most)
				for _, i := range all {
					i.Close()
				}
			})
		}
	}
}
