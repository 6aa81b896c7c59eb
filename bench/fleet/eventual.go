package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/registry"
	"tidegate.dev/tidegate/store/redis"
)

// The limit whose counts are exchanged.
const (
	eventualEvents = 2000
	eventualPeriod = 2 * time.Second
	eventualLasts  = 20 * time.Second // of a round, at most
)

func eventualLimit(algorithm string, wide bool) (*tidegate.Limit, error) {
	a, err := tidegate.ParseAlgorithm(algorithm)
	if err != nil {
		return nil, err
	}
	spec := tidegate.Spec{
		Name: "bench", Events: eventualEvents, Period: eventualPeriod, Algorithm: a,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}},
	}
	if wide {
		spec.Events, spec.Period = 100_000_000, time.Hour
	}
	return tidegate.NewLimit(spec)
}

// runEventual sends this instance's share of the load, and afterwards what others do not know of.
func (s *setup) runEventual(below chain.Backend, shared chain.Shared, others *registry.Registry, log *os.File) error {
	limit, err := eventualLimit(s.eventual, s.wide)
	if err != nil {
		return err
	}
	store := eventual.New(below, eventual.Options{Tallies: shared.Tallies(), Instances: others.Size})
	defer store.Close()
	if s.share == 0 {
		time.Sleep(time.Until(time.Unix(0, s.start).Add(s.lasts)))
		return nil
	}
	if err := s.press(store, limit, log); err != nil {
		return err
	}
	for range 100 { // answers may be lost
		if store.Flush(); store.Status().Unsent == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("not all counts could be sent: %+v", store.Status())
}

// eventualRound is one run of instances that exchange counts.
type eventualRound struct {
	instances int
	algorithm string
	load      float64 // of the limit
	one       bool    // all of it on one instance
	lossy     bool    // one answer of Redis in twenty is lost; the limit is wide
}

var eventualRounds = []eventualRound{
	{instances: 3, algorithm: "sub_windows", load: 3},
	{instances: 3, algorithm: "fixed_window", load: 3},
	{instances: 8, algorithm: "sub_windows", load: 3},
	{instances: 8, algorithm: "fixed_window", load: 3},
	{instances: 3, algorithm: "sub_windows", load: 0.9},
	{instances: 8, algorithm: "sub_windows", load: 0.9},
	{instances: 8, algorithm: "sub_windows", load: 0.9, one: true},
	{instances: 8, algorithm: "fixed_window", load: 0.9, one: true},
	{instances: 3, algorithm: "sub_windows", load: 3, lossy: true},
}

func (r eventualRound) String() string {
	text := fmt.Sprintf("eventual, %d instances, %s, %.1fx", r.instances, r.algorithm, r.load)
	if r.one {
		text += " on one"
	}
	if r.lossy {
		text += ", answers lost"
	}
	return text
}

// eventualResult is what came of a round.
type eventualResult struct {
	eventualRound
	asked, admitted int64
	refused         int64
	over            float64 // events above the limit, at worst
	counted         int64   // by Redis, if answers were lost
	calls           int64
}

func (r eventualRound) play(ctx context.Context, lasts time.Duration) (res eventualResult, err error) {
	rig.Progress("%s: %s", r, lasts)
	dir, err := os.MkdirTemp("", "tidegate-fleet-")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	server, err := startRedis(ctx, dir)
	if err != nil {
		return res, err
	}
	defer server.stop()
	address := server.Address
	if r.lossy {
		proxy, err := startLossy(server.Address)
		if err != nil {
			return res, err
		}
		defer proxy.Close()
		address = proxy.Addr().String()
	}
	start := time.Now().Add(startUp)
	logs := make([]string, r.instances)
	running := make([]*child, r.instances)
	for i := range running {
		logs[i] = filepath.Join(dir, fmt.Sprint("log", i))
		s := setup{
			redis: "redis://" + address, log: logs[i], start: start.UnixNano(), lasts: lasts, share: r.instances,
			eventual: r.algorithm, offered: int(r.load * eventualEvents / eventualPeriod.Seconds()), wide: r.lossy,
		}
		if r.one {
			s.share = 0 // it is there, and nobody asks it
		}
		if r.one && i == 0 {
			s.share = 1
		}
		if running[i], err = startInstance(ctx, s); err != nil {
			return res, err
		}
		defer running[i].end()
	}
	if err := sleepUntil(ctx, start); err != nil {
		return res, err
	}
	before, err := server.calls(ctx)
	if err != nil {
		return res, err
	}
	for _, c := range running {
		if err := c.wait(); err != nil {
			return res, err
		}
	}
	after, err := server.calls(ctx)
	if err != nil {
		return res, err
	}
	var all []outcome
	for _, file := range logs {
		log, err := readLog(file)
		if err != nil {
			return res, err
		}
		all = append(all, log...)
	}
	if res, err = r.check(all); err != nil {
		return res, err
	}
	res.calls = after - before
	if r.lossy {
		res.counted, err = r.counted(ctx, server.Address)
	}
	return res, err
}

// check replays what was admitted through counts of windows that share no code with the real ones.
func (r eventualRound) check(all []outcome) (res eventualResult, err error) {
	slices.SortFunc(all, func(a, b outcome) int { return int(a.at - b.at) })
	limit, err := eventualLimit(r.algorithm, r.lossy)
	if err != nil {
		return res, err
	}
	res = eventualResult{eventualRound: r, asked: int64(len(all))}
	part, older := limit.Period.Nanoseconds(), int64(0)
	if limit.Algorithm == tidegate.SubWindows {
		part, older = microsecondsUp(part, int64(limit.Parts)), int64(limit.Parts)
	}
	counts := map[int64]float64{}
	for _, o := range all {
		if !o.ok {
			res.refused++
			continue
		}
		res.admitted++
		now := o.at / part
		counts[now]++
		used := counts[now]
		for i := int64(1); i < older; i++ {
			used += counts[now-i]
		}
		if older > 0 { // the oldest part is leaving the window
			used += math.Floor(counts[now-older] * (1 - float64(o.at%part)/float64(part)))
		}
		res.over = max(res.over, used-float64(limit.Events))
	}
	return res, nil
}

// microsecondsUp returns a part of a period in ns, in whole microseconds.
func microsecondsUp(period, parts int64) int64 {
	us := period / 1000
	return (us + parts - 1) / parts * 1000
}

// counted returns what Redis has of the key.
func (r eventualRound) counted(ctx context.Context, address string) (sum int64, err error) {
	limit, err := eventualLimit(r.algorithm, r.lossy)
	if err != nil {
		return 0, err
	}
	store, err := redis.New("redis://" + address)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	shared, _ := chain.AsShared(store)
	all := []chain.Tally{{Limit: limit, Key: "one", Instance: tidegate.NewHandle(), Number: 1}}
	if err := shared.Tallies().Exchange(ctx, all); err != nil {
		return 0, err
	}
	for _, p := range all[0].Answer.Totals {
		sum += p.Count
	}
	return sum, nil
}

// add counts a round in the summary.
func (s *summary) add(r eventualResult) {
	switch over := r.over / eventualEvents; {
	case r.lossy:
		s.miscount += max(r.counted-r.admitted, r.admitted-r.counted)
	case r.load < 1:
		s.refused += r.refused
	case r.instances == 3:
		s.over = max(s.over, over)
	default:
		s.overMany = max(s.overMany, over)
	}
}

func printEventual(out io.Writer, r eventualResult) {
	fmt.Fprintf(out, "%-52s %8s asked %8s admitted %7s refused  over by %.1f %%  calls %s", r.eventualRound,
		report.Thousands(r.asked), report.Thousands(r.admitted), report.Thousands(r.refused), 100*r.over/eventualEvents, report.Thousands(r.calls))
	if r.lossy {
		fmt.Fprintf(out, "  counted %s", report.Thousands(r.counted))
	}
	fmt.Fprintln(out)
}
