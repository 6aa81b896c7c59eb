package redis

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

var (
	//go:embed testdata/format1/leases_take.lua
	leases1Take string
	//go:embed testdata/format1/leases_change.lua
	leases1Change string
)

// leases1 is a node that names slots by the instant they were taken at.
type leases1 struct {
	*Store
	take, change *script
	names        uint16
}

func newLeases1(s *Store) *leases1 {
	make := func(text string) *script {
		sum := sha1.Sum([]byte(text))
		return &script{text, hex.EncodeToString(sum[:])}
	}
	return &leases1{s, make(leases1Take), make(leases1Change), 0}
}

func (l *leases1) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	c := asks[0].Checks[0]
	lim, err := l.compile(c.Limit)
	if err != nil {
		return err
	}
	tag := l.tag()
	var head, ask packer
	head.number(float64(tag))
	head.number(l.clock.pretended())
	head.int(int64(asks[0].Copies))
	head.uint16(l.names % 1024)
	l.names++
	ask.byte(byte(lim.kind))
	ask.byte(0)
	ask.uint16(1)
	ask.text(lim.id)
	ask.int(c.Cost)
	lim.law(&ask, 0, nil, 0)
	got, err := l.endpoints[0].runNumbers(ctx, l.take, []string{lim.name(c.Key)}, []string{string(head), string(ask)}, tag)
	if err != nil {
		return err
	}
	asks[0].Granted = tidegate.Decision{
		OK: got[0] > 0, Limit: c.Limit, Granted: got[0], Remaining: got[4], Receipt: tidegate.Receipt{At: got[1]*algo.Micro + got[2]},
	}
	return nil
}

func (l *leases1) alter(ctx context.Context, verb act, r tidegate.Receipt, c tidegate.Check) (lost int64, err error) {
	lim, err := l.compile(c.Limit)
	if err != nil {
		return 0, err
	}
	tag := l.tag()
	var head, ask packer
	head.number(float64(tag))
	head.number(l.clock.pretended())
	head.byte(0)
	head.int(0)
	head.int(0)
	ask.byte(byte(lim.kind))
	ask.byte(byte(verb))
	ask.uint16(1)
	ask.text(lim.id)
	ask.int(max(-c.Cost, c.Cost))
	ask.ticks(r.At)
	ask.int(0)
	lim.law(&ask, 0, nil, 0)
	got, err := l.endpoints[0].runNumbers(ctx, l.change, []string{lim.name(c.Key)}, []string{string(head), string(ask)}, tag)
	if err != nil {
		return 0, err
	}
	return got[2], nil
}

func (l *leases1) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	_, err := l.alter(ctx, giveBack, r, checks[0])
	return err
}

func (l *leases1) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	lost, err := l.alter(ctx, renew, r, checks[0])
	if err == nil && lost > 0 {
		return tidegate.ErrLeaseLost
	}
	return err
}

// slotted is what both formats of nodes can do.
type slotted interface {
	tidegate.Store
	tidegate.Renewer
	TakeBatch(ctx context.Context, asks []chain.Ask) error
}

// While a fleet is updated, nodes that name slots by the instant and nodes that choose
// names share one Redis: slots of both count, and are renewed and given back by their own
// nodes, exactly as a model of the law says. Names that new nodes give back without having
// taken them hold nothing, and cannot be taken.
func TestSlotsBesideFormat1(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 9))
		now := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
		open := func() *Store {
			return openTest(t, Config{Addrs: []string{server.Addr}, pretend: func() time.Time { return now }})
		}
		first := open()
		l := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 6, Period: 10 * time.Second, Algorithm: tidegate.Concurrency})
		nodes := []slotted{in(first), newLeases1(open()), in(open()), newLeases1(open())}
		for _, n := range nodes {
			switch n := n.(type) {
			case fleetStore:
				n.prefix = first.prefix
			case *leases1:
				n.prefix = first.prefix
			}
		}
		type held struct {
			node slotted
			r    tidegate.Receipt
			cost int64
			ends time.Time
		}
		var all []held
		check := func(cost int64) []tidegate.Check { return []tidegate.Check{{Key: "k", Limit: l, Cost: cost}} }
		inUse := func() (n int64) {
			for _, h := range all {
				if h.ends.After(now) {
					n += h.cost
				}
			}
			return n
		}
		for step := range 600 {
			node := nodes[r.IntN(len(nodes))]
			switch r.IntN(8) {
			case 0, 1, 2:
				cost := 1 + r.Int64N(2)
				asks := []chain.Ask{{Checks: check(cost), Copies: 1, Handle: tidegate.NewHandle()}}
				marked := r.IntN(5) == 0
				if s, ok := node.(fleetStore); ok && marked { // the release came first
					if err := s.Adjust(t.Context(), tidegate.Receipt{Handle: asks[0].Handle}, check(-cost)); err != nil {
						t.Fatal(err)
					}
				} else {
					marked = false
				}
				if err := node.TakeBatch(t.Context(), asks); err != nil || asks[0].Err != nil {
					t.Fatal(err, asks[0].Err)
				}
				d := asks[0].Granted
				if want := !marked && inUse()+cost <= 6; d.OK != want {
					t.Fatalf("seed %d, step %d: %+v with %d in use, want %t", seed, step, d, inUse(), want)
				}
				if d.OK {
					all = append(all, held{node, d.Receipt, cost, now.Add(10 * time.Second)})
				}
			case 3, 4:
				if len(all) == 0 {
					continue
				}
				h := &all[r.IntN(len(all))]
				err := h.node.Renew(t.Context(), h.r, check(h.cost))
				if lost := !h.ends.After(now); (err == tidegate.ErrLeaseLost) != lost || err != nil && !lost {
					t.Fatalf("seed %d, step %d: Renew: %v, lost %t", seed, step, err, lost)
				}
				if err == nil {
					h.ends = now.Add(10 * time.Second)
				}
			case 5:
				if len(all) == 0 {
					continue
				}
				h := &all[r.IntN(len(all))]
				if err := h.node.Adjust(t.Context(), h.r, check(-h.cost)); err != nil {
					t.Fatal(err)
				}
				h.ends = time.Time{}
			case 6:
				if err := first.Adjust(t.Context(), tidegate.Receipt{Handle: tidegate.NewHandle()}, check(-1)); err != nil {
					t.Fatal(err)
				}
			case 7:
				now = now.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
			}
			if d := mustTake(t, first, 1, check(0)...); d.Remaining != 6-inUse() {
				t.Fatalf("seed %d, step %d: %d left, want %d", seed, step, d.Remaining, 6-inUse())
			}
		}
	}
}
