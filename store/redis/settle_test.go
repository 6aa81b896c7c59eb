package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// reserveThree reserves an estimate on three subjects in three slots.
func reserveThree(t *testing.T, s *Store, user string, a tidegate.Algorithm, estimate int64) ([]tidegate.Check, tidegate.Receipt) {
	t.Helper()
	checks := threeSubjects(user, "10.1.0."+user, a, 1000, 1200)
	checks[2].Key = user // a counter of its own for each case; still the widest by its capacity
	for i := range checks {
		checks[i].Cost, checks[i].Estimate = estimate, true
	}
	d, err := s.Reserve(context.Background(), checks, time.Minute)
	if err != nil || d.Receipt.Handle.IsZero() {
		t.Fatalf("Reserve: %+v, %v", d, err)
	}
	return checks, d.Receipt
}

func wantUsed(t *testing.T, s *Store, checks []tidegate.Check, want int64) {
	t.Helper()
	for _, c := range checks {
		if got := c.Limit.Events - left(t, s, c); got != want {
			t.Errorf("%s of %s: %d used, want %d", c.Key, c.Limit, got, want)
		}
	}
}

// Wherever settling over several slots was broken off, by a crash or by a lost answer, it
// is gone on with when it is called again, and every subject is changed once.
func TestTrapSettleIsGoneOnWith(t *testing.T) {
	t.Parallel()
	s := openTest(t, clusterOf(testdep.RedisCluster(t, 3, 0)))
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 2))
	algorithms := []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog}
	for i := range 60 {
		a, estimate, actual := algorithms[i%len(algorithms)], 1+r.Int64N(100), r.Int64N(200)
		checks, id := reserveThree(t, s, fmt.Sprint(a, i), a, estimate)
		for range r.IntN(4) {
			breakOff(t, s, r, s.recordID(id.Handle, id.Place), actual)
		}
		switch err := s.Settle(ctx, id, actual); err {
		case nil:
		case tidegate.ErrSettled: // only the last answer was lost
		default:
			t.Fatalf("case %d: settle again: %v", i, err)
		}
		if err := s.Settle(ctx, id, actual+1); err != tidegate.ErrSettled {
			t.Errorf("case %d: settled after it was settled: %v", i, err)
		}
		wantUsed(t, s, checks, actual)
	}
}

// breakOff does some of the steps of Settle, in its order.
func breakOff(t *testing.T, s *Store, r *rand.Rand, id string, actual int64) {
	t.Helper()
	ctx := context.Background()
	at := s.home(s.recordKey(id))
	rec, err := s.readRecord(ctx, at, id)
	if err == tidegate.ErrSettled {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !rec.settling {
		here, _, _, err := s.settlement(rec, at, id, actual)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.apply(ctx, here, recordAction{key: s.recordKey(id), act: settleBegin, actual: actual}); err != nil {
			t.Fatal(err)
		}
	}
	_, elsewhere, _, err := s.settlement(rec, at, id, actual)
	if err != nil {
		t.Fatal(err)
	}
	all := true
	for where, changes := range byPlace(elsewhere) {
		if r.IntN(2) == 0 {
			all = false
			continue
		}
		if _, _, err := s.apply(ctx, changes, recordAction{key: s.markKey(id, where.tag), act: settleOnce}); err != nil {
			t.Fatal(err)
		}
	}
	if all && r.IntN(2) == 0 {
		if _, err := at.delete(ctx, s.recordKey(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// Several that settle one record at the same time, with one amount or with different ones, agree on the
// amount that was first, and one of them is told that it has settled the record.
func TestSettleAtOnceOverSlots(t *testing.T) {
	t.Parallel()
	s := openTest(t, clusterOf(testdep.RedisCluster(t, 3, 0)))
	for i := range 60 {
		checks, id := reserveThree(t, s, fmt.Sprint("twice", i), tidegate.FixedWindow, 50)
		amounts := [][]int64{{10, 80}, {10, 10}, {80, 80, 80, 80, 80, 80}}[i%3]
		errs := make(chan error, len(amounts))
		for _, actual := range amounts {
			go func() { errs <- s.Settle(context.Background(), id, actual) }()
		}
		settled := 0
		for range amounts {
			switch err := <-errs; err {
			case nil:
				settled++
			case tidegate.ErrSettled:
			default:
				t.Fatal(err)
			}
		}
		used := checks[0].Limit.Events - left(t, s, checks[0])
		if settled != 1 || used != 10 && used != 80 {
			t.Errorf("%d of %d were told that they settled, and %d are used", settled, len(amounts), used)
		}
		wantUsed(t, s, checks, used)
	}
}

// A master that stands still while a record is settled costs an error; the same call does
// the rest when it is back.
func TestSettleWhileAMasterIsAway(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	s := openTest(t, clusterOf(nodes))
	type held struct {
		checks []tidegate.Check
		id     tidegate.Receipt
	}
	var all []held
	for i := range 12 {
		checks, id := reserveThree(t, s, fmt.Sprint("away", i), tidegate.SubWindows, 50)
		all = append(all, held{checks, id})
	}
	nodes[1].Pause()
	failed := 0
	for _, h := range all {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if err := s.Settle(ctx, h.id, 20); err != nil {
			failed++
		}
		cancel()
	}
	nodes[1].Resume()
	if failed == 0 {
		t.Fatal("no record needs the master that is away: the test has lost its point")
	}
	for _, h := range all {
		testdep.Eventually(t, "it can be settled", func() bool {
			err := s.Settle(context.Background(), h.id, 20)
			return err == nil || err == tidegate.ErrSettled
		})
		wantUsed(t, s, h.checks, 20)
	}
}

// An estimate whose time is over stays charged on all subjects, in the last second as well, in which its record
// can still be read.
func TestSettleTooLateOverSlots(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c")
	start := time.Unix(1005*24*3600*20, 0) // in the middle of every period
	now := start
	s := openTest(t, Config{Shards: shards, pretend: func() time.Time { return now }})
	const estimate = 50
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		for _, late := range []time.Duration{-time.Microsecond, 0, time.Second} {
			for _, actual := range []int64{0, 5, estimate, 80} {
				now = start
				checks, id := reserveThree(t, s, fmt.Sprint(a, late, actual), a, estimate)
				now = start.Add(time.Minute + late) // for which it was reserved
				want, wantErr := int64(estimate), tidegate.ErrSettled
				if late < 0 {
					want, wantErr = actual, nil
				}
				if err := s.Settle(t.Context(), id, actual); err != wantErr {
					t.Errorf("%s settled with %d, %s late: %v, want %v", a, actual, late, err, wantErr)
				}
				wantUsed(t, s, checks, want)
			}
		}
	}
}
