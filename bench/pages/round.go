package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/served"
)

// summary is the last line: what pages take of a core.
type summary struct {
	pages  int
	shares []float64 // of each round, in percent
	table  report.Table
}

func (s summary) share() float64 { return report.Median(s.shares) }

func (s summary) String() string {
	return fmt.Sprintf("bench-pages: %d pages take %.2f %% of a core", s.pages, s.share())
}

// newsEvery is how often an open page has news.
const newsEvery = 2 * time.Second

// round measures once without pages and once with them.
func (s *summary) round(ctx context.Context, i int, g *served.Gateway, heat time.Duration) error {
	without, err := shareOf(ctx, g.PID, heat)
	if err != nil {
		return err
	}
	v, err := openPages(ctx, g.Admin, s.pages)
	if err != nil {
		return err
	}
	defer v.close()
	before, bytes := v.events.Load(), v.bytes.Load()
	with, err := shareOf(ctx, g.PID, heat)
	if err != nil {
		return err
	}
	n := v.events.Load() - before
	events := float64(n) / float64(s.pages)
	if left := v.open.Load(); left != int64(s.pages) || events < heat.Seconds()/newsEvery.Seconds()/2 {
		return fmt.Errorf("%d of %d pages are open, and got %.1f events each: the figure says nothing", left, s.pages, events)
	}
	s.shares = append(s.shares, with-without)
	s.table.Add(fmt.Sprint(i+1), percent(without), percent(with), percent(with-without), fmt.Sprintf("%.1f", events), fmt.Sprint((v.bytes.Load()-bytes)/max(n, 1)))
	rig.Progress("round %d: %s with pages, %s without", i+1, percent(with), percent(without))
	return nil
}

func percent(p float64) string { return fmt.Sprintf("%.2f %%", p) }

// shareOf returns how much of a core a process takes for a while, in percent.
func shareOf(ctx context.Context, pid int, during time.Duration) (float64, error) {
	before, err := process.TreeTime(pid)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(during):
	}
	after, err := process.TreeTime(pid)
	return 100 * (after - before).Seconds() / time.Since(begin).Seconds(), err
}
