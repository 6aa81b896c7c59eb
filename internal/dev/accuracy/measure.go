package main

import (
	"fmt"
	"io"
	"sync"
)

// result is how all did under one shape.
type result struct {
	shape    shape
	requests int64
	exact    int64   // what an exact log admits
	scores   []score // by contestant
}

func (r *result) add(other *result) {
	r.requests += other.requests
	r.exact += other.exact
	for i := range r.scores {
		r.scores[i].add(other.scores[i])
	}
}

// job is some clients of a shape.
type job struct {
	shape    int
	from, to int // clients
}

// jobs cuts the clients of shapes into pieces that keep every core busy.
func jobs(shapes []shape, scale float64) []job {
	const pieces = 64
	var all []job
	for i, s := range shapes {
		clients := max(1, int(float64(s.clients)*scale))
		size := (clients + pieces - 1) / pieces
		for from := 0; from < clients; from += size {
			all = append(all, job{i, from, min(from+size, clients)})
		}
	}
	return all
}

// measure runs every contestant over every shape. What is added up are whole
// numbers, so the order in which workers finish changes nothing.
func measure(cs []contestant, shapes []shape, scale float64, seed uint64, workers int, progress io.Writer) []result {
	todo := jobs(shapes, scale)
	left := make([]int, len(shapes))
	for _, j := range todo {
		left[j.shape]++
	}
	results := make([]result, len(shapes))
	for i, s := range shapes {
		results[i] = result{shape: s, scores: make([]score, len(cs))}
	}
	var (
		mu   sync.Mutex
		done int
		wg   sync.WaitGroup
		next = make(chan job)
	)
	for range workers {
		wg.Go(func() {
			w := newWorker(cs, seed)
			for j := range next {
				piece := w.run(shapes[j.shape], j)
				mu.Lock()
				total := &results[j.shape]
				total.add(&piece)
				if left[j.shape]--; left[j.shape] == 0 {
					done++
					fmt.Fprintf(progress, "%2d of %d  %-18s %9d requests, %5.1f %% refused by an exact log\n",
						done, len(shapes), total.shape.name, total.requests, 100*share(total.requests-total.exact, total.requests))
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range todo {
		next <- j
	}
	close(next)
	wg.Wait()
	return results
}

// worker is what one goroutine reuses from client to client.
type worker struct {
	seed      uint64
	gates     []gate
	reference history
	buf       []int64
}

func newWorker(cs []contestant, seed uint64) *worker {
	w := &worker{seed: seed}
	for _, c := range cs {
		w.gates = append(w.gates, newGate(c))
	}
	return w
}

func (w *worker) run(s shape, j job) result {
	r := result{shape: s, scores: make([]score, len(w.gates))}
	for client := j.from; client < j.to; client++ {
		t := newTraffic(w.seed, s.name, client, w.buf)
		s.make(t)
		w.buf = t.sorted()
		r.requests += int64(len(w.buf))
		r.exact += exact(&w.reference, w.buf)
		for i, g := range w.gates {
			r.scores[i].play(g, &w.reference, w.buf)
		}
	}
	return r
}

// share returns a/b; 0 if b is 0.
func share(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
