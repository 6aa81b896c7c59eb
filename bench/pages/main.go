// Command pages measures what open pages of the dashboard cost a gateway: the CPU time of its process
// while many pages follow it, beside that of the same process without them. Both take turns, under
// the same requests. It prints a table and one last line that a script can read.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/served"
)

const (
	// mostTime bounds a run.
	mostTime = 10 * time.Minute
	// mostShare is the bar: how much of a core all pages together may take, in percent.
	mostShare = 5
	// every is how often the gateway is asked meanwhile, so that pages have news.
	every = 20 * time.Millisecond
	token = "bench-0123456789abcdef"
)

const rules = `version: 1
identify: { user: client header X-User }
rules:
  - { name: search, match: GET /search, per: user, limits: 10/10s }
  - { name: orders, match: /api/, per: user, limits: 5/second }
  - { name: site, per: everyone, limits: 500/second }
`

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	rig.Main("bench-pages", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := rig.NewFlags("pages", 3, 10*time.Second, 4*time.Second)
	binary := flags.Binary()
	pages := flags.Int("pages", 1000, "how many pages are open")
	if err := flags.Parse(args); err != nil {
		return err
	}
	start := time.Now()
	dir, err := os.MkdirTemp("", "tidegate-pages")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g, err := startGateway(ctx, dir, *binary, *pages)
	if err != nil {
		return err
	}
	defer g.Stop()
	stop := ask(ctx, g.URL)
	defer stop()
	neighbours, err := process.LookAround(ctx)
	if err != nil {
		return err
	}
	s := summary{pages: *pages, table: report.Table{
		Title: "CPU time of the gateway", Head: []string{"round", "without pages", "with pages", "pages alone", "events per page", "bytes per event"},
		Note: fmt.Sprintf("%d pages, half of them of a rule; %.0f requests a second meanwhile. Events grow until the gateway has run for 15 minutes.", *pages, time.Second.Seconds()/every.Seconds()),
	}}
	for i := range flags.Rounds {
		if err := s.round(ctx, i, g, flags.Heat); err != nil {
			return err
		}
	}
	r := report.New(start)
	r.Notes, r.LastLine, r.Tables = []string{neighbours}, s.String(), []report.Table{s.table}
	if err := r.Write(out, flags.Markdown); err != nil {
		return err
	}
	return rig.Conclude(out, flags.Check, s, rig.Missed(rig.Bar{Name: "pages", Got: s.share(), Want: mostShare, AtMost: true, Unit: " % of a core"}))
}

// startGateway runs a gateway with some rules, and an operator who may look.
func startGateway(ctx context.Context, dir, program string, pages int) (g *served.Gateway, err error) {
	if program == "" {
		rig.Progress("building tidegate")
		if program, err = served.Build(ctx, dir); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		"rules.yaml": rules,
		"operators":  fmt.Sprintf("ann view %x\n", sha256.Sum256([]byte(token))),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return served.Start(ctx, program, "--rules="+filepath.Join(dir, "rules.yaml"), "--admin.tokens="+filepath.Join(dir, "operators"), fmt.Sprintf("--admin.pages=%d", pages))
}

// ask sends requests to the gateway, until stop is called.
func ask(ctx context.Context, gateway string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+[]string{"/search", "/api/things"}[i%2], nil)
			if err != nil {
				return
			}
			r.Header.Set("X-User", fmt.Sprintf("user-%d", i%7))
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		}
	}()
	return func() { cancel(); <-ended }
}
