package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// played is a run in which critical requests took so long, but for those that were not served.
func played(name string, calm, overloaded time.Duration, lost int) *run {
	r := &run{name: name, load: &load{}, from: 10 * time.Second, to: 20 * time.Second}
	for i := range 1000 {
		at := time.Duration(i) * 20 * time.Millisecond
		s := sample{class: 0, at: at, took: calm, status: http.StatusOK}
		if at >= r.from {
			if s.took = overloaded; i%500 < lost {
				s.status = 0
			}
		}
		r.load.samples = append(r.load.samples, s)
	}
	return r
}

// What is just within the bars, and what is not.
func TestMissed(t *testing.T) {
	collapsed := played("without", 50*time.Millisecond, time.Second, 500)
	for name, test := range map[string]struct {
		with, without *run
		want          string
	}{
		"well": {played("with", 50*time.Millisecond, 100*time.Millisecond, 5), collapsed, ""},
		"lost": {played("with", 50*time.Millisecond, 100*time.Millisecond, 6), collapsed, "not 99%"},
		"slow": {played("with", 50*time.Millisecond, 101*time.Millisecond, 0), collapsed, "more than twice"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(missed(test.without, test.with), "; ")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("missed %q, want %q", got, test.want)
			}
		})
	}
}

// Each class has its share of the load.
func TestPick(t *testing.T) {
	var counts [3]float64
	const draws = 10_000
	for i := range draws {
		counts[pick(float64(i)/draws)]++
	}
	for i, c := range classes {
		if got := counts[i] / draws; got < c.share-0.001 || got > c.share+0.001 {
			t.Errorf("%s has %.3f of the load, want %.3f", c.name, got, c.share)
		}
	}
}
