package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// class is a kind of traffic, and its share of the load.
type class struct {
	name, method, path string
	share              float64
}

var classes = []class{
	{"critical", http.MethodPost, "/charges", 0.06},
	{"users", http.MethodGet, "/users/", 0.44},
	{"guests", http.MethodGet, "/", 0.5},
}

// clientTimeout is how long a client waits for its answer. What comes later is of no use.
const clientTimeout = time.Second

// phase is a time in which so many times the capacity are asked for.
type phase struct {
	times float64
	lasts time.Duration
}

// sample is what became of one request.
type sample struct {
	class  int
	at     time.Duration // since the start
	took   time.Duration
	status int // 0 means it failed, or came too late
}

// load is an open loop: requests come whether others were answered or not, as those of many clients do.
type load struct {
	url    string
	client *http.Client
	start  time.Time

	mu      sync.Mutex
	samples []sample
}

func newLoad(url string) *load {
	return &load{url: url, client: &http.Client{
		Timeout:   clientTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 4096, MaxIdleConns: 4096},
	}}
}

// run sends the requests of all phases, and returns when the last is answered.
func (l *load) run(ctx context.Context, phases []phase, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	var all sync.WaitGroup
	l.start = time.Now()
	next := l.start
	for _, p := range phases {
		for end := next.Add(p.lasts); next.Before(end) && ctx.Err() == nil; {
			next = next.Add(time.Duration(r.ExpFloat64() / (capacity * p.times) * float64(time.Second)))
			time.Sleep(time.Until(next))
			class, who := pick(r.Float64()), r.IntN(5000)
			all.Go(func() { l.ask(ctx, class, who) })
		}
	}
	all.Wait()
	l.client.CloseIdleConnections()
}

func pick(x float64) int {
	for i, c := range classes {
		if x -= c.share; x < 0 {
			return i
		}
	}
	return len(classes) - 1
}

func (l *load) ask(ctx context.Context, class, who int) {
	c := &classes[class]
	s := sample{class: class, at: time.Since(l.start)}
	req, err := http.NewRequestWithContext(ctx, c.method, l.url+c.path, nil)
	if err != nil {
		panic(err) // the paths are constants
	}
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.0.%d.%d", who/250, who%250))
	begin := time.Now()
	if res, err := l.client.Do(req); err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err == nil {
			s.status = res.StatusCode
		}
	}
	s.took = time.Since(begin)
	l.mu.Lock()
	l.samples = append(l.samples, s)
	l.mu.Unlock()
}

// between returns the samples of a class, or of all with -1, that began from one time to another.
func (l *load) between(class int, from, to time.Duration) (some []sample) {
	for _, s := range l.samples {
		if (class < 0 || s.class == class) && s.at >= from && s.at < to {
			some = append(some, s)
		}
	}
	return some
}

// servedOf returns how many of samples were answered with 200, in time.
func servedOf(samples []sample) (n int) {
	for _, s := range samples {
		if s.status == http.StatusOK {
			n++
		}
	}
	return n
}

// p99 returns how long it took to serve all but a hundredth of those that were; 0 if none was.
func p99(samples []sample) time.Duration {
	var took []time.Duration
	for _, s := range samples {
		if s.status == http.StatusOK {
			took = append(took, s.took)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[(len(took)*99-1)/100]
}
