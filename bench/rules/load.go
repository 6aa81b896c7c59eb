package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/rules"
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

// heap returns what is live.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
