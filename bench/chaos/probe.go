package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
)

// probe measures inside the process of a gateway: what its access log says of every
// request, and how long the process or the machine stands still.
type probe struct {
	mu sync.Mutex
	figures
}

// figures are since they were last asked for.
type figures struct {
	Requests  int           `json:"requests"`
	Errors    int           `json:"errors"`  // 5xx, but where a rule says deny
	Slowest   time.Duration `json:"slowest"` // answer, without the time of the upstream
	Oversleep time.Duration `json:"oversleep"`
	// By is how often requests for a path were decided by whom: redis, local, …
	By map[string]map[string]int `json:"by"`

	// Of several nodes, the worst:
	awake time.Duration // Slowest without Oversleep
	still time.Duration // Oversleep, where Slowest may have been another node's

	PID        int   `json:"pid"`
	Goroutines int   `json:"goroutines"`
	Heap       int64 `json:"heap"` // in use after a collection
	RSS        int64 `json:"rss"`
}

// accessLine is what is read of the access log.
type accessLine struct {
	Path       string  `json:"path"`
	Status     int     `json:"status"`
	MS         float64 `json:"duration_ms"`
	UpstreamMS float64 `json:"upstream_ms"`
	DecidedBy  string  `json:"decided_by"`
}

// Write takes lines of the access log, which come up to a tenth of a second after the end
// of their requests.
func (p *probe) Write(b []byte) (int, error) {
	for text := range bytes.Lines(b) {
		var l accessLine
		if json.Unmarshal(text, &l) == nil && l.Status != 0 { // else what serve says at the start
			p.note(&l)
		}
	}
	return len(b), nil
}

func (p *probe) note(l *accessLine) {
	own := time.Duration((l.MS - l.UpstreamMS) * float64(time.Millisecond))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Requests++
	p.Slowest = max(p.Slowest, own)
	if l.Status >= 500 && !strings.HasPrefix(l.Path, closedPath) {
		p.Errors++
	}
	p.count(l.Path, l.DecidedBy, 1)
}

// count adds to By.
func (f *figures) count(path, by string, n int) {
	if f.By == nil {
		f.By = map[string]map[string]int{}
	}
	if f.By[path] == nil {
		f.By[path] = map[string]int{}
	}
	f.By[path][by] += n
}

// watch notes by how much a sleep of a millisecond was too long.
func (p *probe) watch(ctx context.Context) {
	for ctx.Err() == nil {
		p.overslept(oversleep(0))
	}
}

func (p *probe) overslept(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Oversleep = max(p.Oversleep, by)
}

// ServeHTTP gives the figures and begins anew. With ?memory it collects first, for
// which the process stands still.
func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.take()
	f.PID = os.Getpid()
	if r.URL.Query().Has("memory") {
		f.RSS, _ = process.SettledRSS()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		f.Heap = int64(m.HeapAlloc)
		f.Goroutines = runtime.NumGoroutine()
		p.take() // the process stood still meanwhile
	}
	_ = json.NewEncoder(w).Encode(f)
}

// take returns the figures and begins anew.
func (p *probe) take() figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.figures
	p.figures = figures{}
	return f
}
