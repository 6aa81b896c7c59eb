package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"runtime"
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

	// Of several nodes, the worst:
	awake time.Duration // Slowest without Oversleep
	still time.Duration // Oversleep, where Slowest may have been another node's

	Goroutines int   `json:"goroutines"`
	Heap       int64 `json:"heap"` // in use after a collection
	RSS        int64 `json:"rss"`
}

// line is what is read of the access log.
type line struct {
	Path       string  `json:"path"`
	Status     int     `json:"status"`
	MS         float64 `json:"duration_ms"`
	UpstreamMS float64 `json:"upstream_ms"`
}

// Write takes lines of the access log, which come up to a tenth of a second after the end
// of their requests.
func (p *probe) Write(b []byte) (int, error) {
	for text := range bytes.Lines(b) {
		var l line
		if json.Unmarshal(text, &l) == nil && l.Status != 0 { // else what serve says at the start
			p.note(&l)
		}
	}
	return len(b), nil
}

func (p *probe) note(l *line) {
	own := time.Duration((l.MS - l.UpstreamMS) * float64(time.Millisecond))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Requests++
	p.Slowest = max(p.Slowest, own)
	if l.Status >= 500 && l.Path != closedPath {
		p.Errors++
	}
}

// watch notes by how much a sleep of a millisecond was too long.
func (p *probe) watch() {
	for {
		over := oversleep(0)
		p.mu.Lock()
		p.Oversleep = max(p.Oversleep, over)
		p.mu.Unlock()
	}
}

// ServeHTTP gives the figures and begins anew. With ?memory it collects first, for
// which the process stands still.
func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	f := p.figures
	p.mu.Unlock()
	if r.URL.Query().Has("memory") {
		f.RSS, _ = process.SettledRSS()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		f.Heap = int64(m.HeapAlloc)
		f.Goroutines = runtime.NumGoroutine()
	}
	p.mu.Lock()
	p.figures = figures{}
	p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(f)
}
