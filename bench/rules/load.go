package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// perFile rules are in one file of a folder.
const perFile = 1000

// writeFolder writes n rules of different kinds as a folder of files.
func writeFolder(folder string, n int) error {
	for first := 0; first < n; first += perFile {
		var b strings.Builder
		b.WriteString("version: 1\n")
		if first == 0 {
			b.WriteString("identify:\n  user: header X-User\n  plan: header X-Plan\n")
		}
		b.WriteString("rules:\n")
		for i := first; i < min(first+perFile, n); i++ {
			b.WriteString(other(i))
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("rules%04d.yaml", first/perFile)), []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// loaded is what it takes to load a folder of rules.
type loaded struct {
	took    time.Duration
	perRule float64 // bytes that stay
}

// loadFolder loads n rules, the quickest of several times, and weighs them.
func loadFolder(ctx context.Context, n, times int) (l loaded, err error) {
	folder, err := os.MkdirTemp("", "bench-rules")
	if err != nil {
		return l, err
	}
	defer os.RemoveAll(folder)
	if err := writeFolder(folder, n); err != nil {
		return l, err
	}
	for range times {
		if err := ctx.Err(); err != nil {
			return l, err
		}
		rig.Progress("load %d rules", n)
		before := heap()
		start := time.Now()
		set, err := rules.Load(folder, rules.Config{})
		took := time.Since(start)
		if err != nil {
			return l, err
		}
		if l.took == 0 || took < l.took {
			l.took = took
		}
		l.perRule = float64(heap()-before) / float64(n)
		if got := len(set.Rules()); got != n {
			return l, fmt.Errorf("%d rules were loaded, not %d", got, n)
		}
	}
	return l, nil
}

// heap is what is live.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// reloaded is how decisions fare while rules are read again and put in force.
type reloaded struct {
	worst     time.Duration // decision
	oversleep time.Duration // of the probe, which nobody can be blamed for
	decisions int
}

// reload puts n rules in force again and again while a probe decides.
func reload(ctx context.Context, n, times int) (r reloaded, err error) {
	folder, err := os.MkdirTemp("", "bench-rules")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	if err := writeFolder(folder, n); err != nil {
		return r, err
	}
	set, err := rules.Load(folder, rules.Config{})
	if err != nil {
		return r, err
	}
	live := rules.NewLive(set)
	gate := tidegate.NewGate(live, memory.New())
	stop, probed := make(chan struct{}), make(chan reloaded)
	go func() { probed <- probe(gate, stop) }()
	for range times {
		if err = ctx.Err(); err != nil {
			break
		}
		rig.Progress("reload %d rules", n)
		var again *rules.Set
		if again, err = rules.Load(folder, rules.Config{}); err != nil {
			break
		}
		live.Swap(again)
	}
	close(stop)
	return <-probed, err
}

// probe decides every fifth of a millisecond or so.
func probe(gate *tidegate.Gate, stop <-chan struct{}) (r reloaded) {
	const pause = 200 * time.Microsecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	request := new(tidegate.Request)
	for {
		select {
		case <-stop:
			return r
		default:
		}
		before := time.Now()
		time.Sleep(pause)
		woken := time.Now()
		r.oversleep = max(r.oversleep, woken.Sub(before)-pause)
		request.Reset()
		request.Method, request.Host, request.Path, request.Values = "GET", "shop.example.com", "/api/lists7", values{}
		gate.Decide(context.Background(), request)
		r.worst = max(r.worst, time.Since(woken))
		r.decisions++
	}
}
