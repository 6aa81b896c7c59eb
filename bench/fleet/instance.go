package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/lease"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/internal/chain/registry"
	"tidegate.dev/tidegate/store/redis"
)

// The limit that all instances share on one key, and what is offered in all.
const (
	events  = 20_000 // a second, and the burst
	offered = 3 * events
	callers = 8 // of an instance
)

// limitOf is called the same in every way, so that its counters are, too.
func limitOf(c tidegate.Consistency) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{
		Name: "bench", Events: events, Period: time.Second, Algorithm: tidegate.TokenBucket,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: c, OnStoreFailure: tidegate.FailLocal}},
	})
}

// instanceWord is the first argument of this program when it is to be an instance.
const instanceWord = "instance"

// setup is what an instance is told.
type setup struct {
	redis  string
	log    string // file
	leased bool
	skew   time.Duration
	start  int64 // nanoseconds since the epoch: load begins
	lasts  time.Duration
	share  int // of what is offered: one in so many; 0 means nothing

	eventual string // the algorithm of the limit that is; "" means none is
	offered  int    // a second, by all instances
	wide     bool   // the limit is so wide that nobody is refused

	region      string // as OWN,OTHER=URL; "" means there is one
	onPartition string
}

func (s *setup) flags() *flag.FlagSet {
	f := flag.NewFlagSet(instanceWord, flag.ContinueOnError)
	f.StringVar(&s.redis, "redis", "", "")
	f.StringVar(&s.log, "log", "", "")
	f.BoolVar(&s.leased, "leased", false, "")
	f.DurationVar(&s.skew, "skew", 0, "")
	f.Int64Var(&s.start, "start", 0, "")
	f.DurationVar(&s.lasts, "lasts", 0, "")
	f.IntVar(&s.share, "share", 1, "")
	f.StringVar(&s.eventual, "eventual", "", "")
	f.IntVar(&s.offered, "offered", offered, "")
	f.BoolVar(&s.wide, "wide", false, "")
	f.StringVar(&s.region, "region", "", "")
	f.StringVar(&s.onPartition, "on_partition", "", "")
	return f
}

func (s *setup) args() []string {
	return []string{
		instanceWord, "-redis", s.redis, "-log", s.log, fmt.Sprint("-leased=", s.leased), "-skew", s.skew.String(),
		"-start", fmt.Sprint(s.start), "-lasts", s.lasts.String(), "-share", fmt.Sprint(s.share),
		"-eventual", s.eventual, "-offered", fmt.Sprint(s.offered), fmt.Sprint("-wide=", s.wide),
		"-region", s.region, "-on_partition", s.onPartition,
	}
}

// asInstance runs an instance if the arguments of this process say so.
func asInstance() {
	if len(os.Args) < 2 || os.Args[1] != instanceWord {
		return
	}
	process.EndWithParent()
	var s setup
	err := s.flags().Parse(os.Args[2:])
	if err == nil {
		err = s.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "instance:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs an instance as fleet.Open makes it, except for its clock, which may be wrong.
func (s *setup) run() error {
	log, err := os.OpenFile(s.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.region != "" {
		return s.runRegion(log)
	}
	inner, err := redis.Open(redis.Config{URL: s.redis})
	if err != nil {
		return err
	}
	defer inner.Close()
	shared, _ := chain.AsShared(inner)
	others := registry.New(shared, registry.Options{})
	n := node.New(shared, node.Options{Name: "Redis", Instances: others.Size, Skew: s.skew})
	defer n.Close()
	store := lease.New(n, n, lease.Options{Instances: others.Size})
	defer store.Close()
	others.Join()
	defer others.Close()
	if s.eventual != "" {
		return s.runEventual(store, shared, others, log)
	}
	consistency := tidegate.Strict
	if s.leased {
		consistency = tidegate.Leased
	}
	return s.press(store, limitOf(consistency), log)
}

// press sends this instance's share of the load, and logs each admission as it comes: the
// process may be killed at any time.
func (s *setup) press(store tidegate.Store, limit *tidegate.Limit, log *os.File) error {
	var (
		all  sync.WaitGroup
		errs = make([]error, callers)
		from = time.Unix(0, s.start)
		gap  = time.Second * time.Duration(callers*s.share) / time.Duration(s.offered)
	)
	for i := range callers {
		all.Go(func() {
			checks := []tidegate.Check{{Key: "one", Limit: limit, Cost: 1}}
			next := from.Add(gap * time.Duration(i) / callers)
			for ; next.Sub(from) < s.lasts; next = next.Add(gap) {
				if late := time.Since(next); late < 0 {
					time.Sleep(-late)
				} else if late > time.Second { // it joined later, or stood still
					next = next.Add(late / gap * gap)
					continue
				}
				d, err := store.Take(context.Background(), checks, 1)
				if err != nil {
					errs[i] = err
					return
				}
				if err := write(log, outcome{time.Now().UnixNano(), d.OK, d.Receipt.Origin}); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// outcome is a line of the log.
type outcome struct {
	at     int64 // nanoseconds since the epoch, when the caller had its answer
	ok     bool
	origin tidegate.Origin
}

const outcomeSize = 10

func write(log *os.File, o outcome) error {
	var line [outcomeSize]byte
	binary.LittleEndian.PutUint64(line[:], uint64(o.at))
	if o.ok {
		line[8] = 1
	}
	line[9] = byte(o.origin)
	_, err := log.Write(line[:]) // appends are whole
	return err
}

func readLog(file string) ([]outcome, error) {
	text, err := os.ReadFile(file)
	all := make([]outcome, 0, len(text)/outcomeSize)
	for ; len(text) >= outcomeSize; text = text[outcomeSize:] {
		all = append(all, outcome{int64(binary.LittleEndian.Uint64(text)), text[8] == 1, tidegate.Origin(text[9])})
	}
	return all, err
}
