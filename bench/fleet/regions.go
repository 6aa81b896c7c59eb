package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/redis"
)

// The limit that two regions share, and what happens to them: they do not hear of each other for
// a while, and in the middle of that the Redis of one loses everything.
const (
	regionEvents  = 20_000
	regionOffered = 1_500 // a second, in both regions
	regionCut     = 5 * time.Second
	regionWipe    = 15 * time.Second
	regionHeal    = 25 * time.Second
	regionLasts   = 45 * time.Second
	// regionLag is Λ of docs/consistency.md with what this machine adds, and regionNotice until a
	// partition is noticed.
	regionLag    = 600 * time.Millisecond
	regionNotice = 6 * time.Second
)

var regionNames = [2]string{"eu", "us"}

// regionLimit is one of a day.
func regionLimit(on string) *tidegate.Limit {
	terms := &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: tidegate.PartitionContinue}}
	if on == tidegate.PartitionShare.String() {
		terms.Handling.OnPartition = tidegate.PartitionShare
	}
	return tidegate.MustLimit(tidegate.Spec{Name: "regions", Events: regionEvents, Period: 24 * time.Hour, Algorithm: tidegate.FixedWindow, Terms: terms})
}

// runRegion runs an instance of a region.
func (s *setup) runRegion(log *os.File) error {
	own, other, _ := strings.Cut(s.region, ",")
	name, url, _ := strings.Cut(other, "=")
	store, err := fleet.Open(s.redis, fleet.Options{Region: own, Regions: []fleet.Region{{Name: name, URL: url}}})
	if err != nil {
		return err
	}
	defer store.Close()
	return s.press(store, regionLimit(s.onPartition), log)
}

// regionResult is what came of two regions.
type regionResult struct {
	on              string
	asked, admitted int64
	over, bound     float64
	converged       time.Duration // after the partition
	refilled        int64         // admitted after that
	counted         [2]int64      // by each Redis, in the end
}

// playRegions has three processes in each of two regions share a limit.
func playRegions(ctx context.Context, on string) (res regionResult, err error) {
	rig.Progress("regions, on_partition: %s: %s", on, regionLasts)
	res.on = on
	dir, err := os.MkdirTemp("", "tidegate-fleet-")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	var servers [2]*redisServer
	var proxies [2]*silentProxy // to each
	for i := range servers {
		if servers[i], err = startRedis(ctx, dir); err != nil {
			return res, err
		}
		defer func() { servers[i].stop() }()
		if proxies[i], err = startSilent(servers[i].Address); err != nil {
			return res, err
		}
		defer proxies[i].Close()
	}
	start := time.Now().Add(startUp)
	var logs []string
	var running []*child
	for i := range 6 {
		own := i % 2
		logs = append(logs, filepath.Join(dir, fmt.Sprint("log", i)))
		c, err := startInstance(ctx, setup{
			redis: "redis://" + servers[own].Address, log: logs[i], start: start.UnixNano(), lasts: regionLasts, share: 6, offered: regionOffered,
			region: fmt.Sprintf("%s,%s=redis://%s", regionNames[own], regionNames[1-own], proxies[1-own].Addr()), onPartition: on,
		})
		if err != nil {
			return res, err
		}
		defer c.end()
		running = append(running, c)
	}
	if err := partition(ctx, start, &servers, proxies, dir); err != nil {
		return res, err
	}
	healed := time.Now()
	if res.converged, err = converge(ctx, on, servers, healed); err != nil {
		return res, err
	}
	for _, c := range running {
		if err := c.wait(); err != nil {
			return res, err
		}
	}
	for i := range servers {
		if res.counted[i], err = countedAt(ctx, on, servers[i].Address); err != nil {
			return res, err
		}
	}
	return res, res.check(logs, healed)
}

// partition cuts the regions off from each other, empties the Redis of the second meanwhile, and ends
// the partition.
func partition(ctx context.Context, start time.Time, servers *[2]*redisServer, proxies [2]*silentProxy, dir string) (err error) {
	set := func(silent bool) {
		for _, p := range proxies {
			p.set(silent)
		}
	}
	if err := sleepUntil(ctx, start.Add(regionCut)); err != nil {
		return err
	}
	set(true)
	defer set(false)
	if err := sleepUntil(ctx, start.Add(regionWipe)); err != nil {
		return err
	}
	address := servers[1].Address
	servers[1].stop()
	empty, err := startRedisAt(ctx, dir, address)
	if err != nil {
		return err
	}
	servers[1] = empty
	return sleepUntil(ctx, start.Add(regionHeal))
}

// converge waits until both have counted the same, three times in a row, and returns when that began.
func converge(ctx context.Context, on string, servers [2]*redisServer, healed time.Time) (took time.Duration, err error) {
	same := 0
	for time.Since(healed) < regionLasts-regionHeal-2*time.Second {
		a, err := countedAt(ctx, on, servers[0].Address)
		if err != nil {
			return 0, err
		}
		b, err := countedAt(ctx, on, servers[1].Address)
		if err != nil {
			return 0, err
		}
		switch {
		case a != b || a == 0:
			same = 0
		case same == 0:
			took = time.Since(healed)
			fallthrough
		default:
			if same++; same == 3 {
				return took, nil
			}
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("regions have not counted the same %s after the partition", time.Since(healed).Round(time.Second))
}

// countedAt returns what a Redis has of the key.
func countedAt(ctx context.Context, on, address string) (sum int64, err error) {
	store, err := redis.New("redis://" + address)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	shared, _ := chain.AsShared(store)
	all := []chain.Tally{{Limit: regionLimit(on), Key: "one", Instance: tidegate.NewHandle(), Number: 1}}
	if err := shared.Tallies().Exchange(ctx, all); err != nil {
		return 0, err
	}
	for _, p := range all[0].Answer.Totals {
		sum += p.Count
	}
	return sum, nil
}

// check holds what was admitted to the formula of docs/consistency.md.
func (r *regionResult) check(logs []string, healed time.Time) error {
	for _, file := range logs {
		log, err := readLog(file)
		if err != nil {
			return err
		}
		for _, o := range log {
			r.asked++
			if o.ok {
				r.admitted++
			}
			if o.ok && o.at > healed.Add(r.converged+regionLag).UnixNano() {
				r.refilled++
			}
		}
	}
	r.over = float64(r.admitted - regionEvents)
	lasts := regionHeal - regionCut + r.converged
	if r.on == tidegate.PartitionShare.String() {
		lasts = regionNotice
	}
	r.bound = math.Min(regionEvents, regionOffered/2*(lasts+regionLag).Seconds()) + 2*instances
	return nil
}

// missed names what is not as promised.
func (r *regionResult) missed() []string {
	what := "regions, " + r.on + ": "
	return rig.Missed(
		rig.Bar{Name: what + "over the limit", Got: r.over, Want: r.bound, AtMost: true},
		rig.Bar{Name: what + "admitted again", Got: float64(r.refilled), Want: 0, AtMost: true},
		rig.Bar{Name: what + "counted by the first", Got: math.Abs(float64(r.counted[0] - r.admitted)), Want: 0, AtMost: true},
		rig.Bar{Name: what + "counted by the second", Got: math.Abs(float64(r.counted[1] - r.admitted)), Want: 0, AtMost: true})
}

func printRegions(out io.Writer, r *regionResult) {
	fmt.Fprintf(out, "regions, 2 with 3 instances each, on_partition: %-8s  %8s asked %8s admitted of %s  over by %.0f, bound %.0f  the same in both %.2f s after the partition, then %d more  counted %s and %s\n",
		r.on, report.Thousands(r.asked), report.Thousands(r.admitted), report.Thousands(regionEvents), r.over, r.bound, r.converged.Seconds(), r.refilled,
		report.Thousands(r.counted[0]), report.Thousands(r.counted[1]))
}
