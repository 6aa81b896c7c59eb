//go:build unix

package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// shop is an upstream that notes the orders that it gets. It has each effect once, by their keys.
type shop struct {
	*httptest.Server
	mu      sync.Mutex
	arrived map[string][]time.Time // by customer
	effects map[string][]string    // by customer, in their order
	seen    map[string]bool        // Idempotency-Keys
	answer  func(http.ResponseWriter, *http.Request) bool
}

func newShop(t testing.TB) *shop {
	s := &shop{arrived: map[string][]time.Time{}, effects: map[string][]string{}, seen: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its gateway was killed
	}
	s.mu.Lock()
	customer, key := r.Header.Get("X-Customer"), r.Header.Get("Idempotency-Key")
	s.arrived[customer] = append(s.arrived[customer], now)
	answer := s.answer
	if answer == nil && !s.seen[key] {
		s.seen[key] = true
		s.effects[customer] = append(s.effects[customer], string(body))
	}
	s.mu.Unlock()
	if answer == nil || !answer(w, r) {
		fmt.Fprintf(w, "made %s", body)
	}
}

func (s *shop) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.effects {
		n += len(all)
	}
	return n
}

// neverOver checks that customers never had more than events per period. Each order is charged before it is sent
// and is answered before the next one of its customer is charged: so of events+2 arrivals in a row, the
// charges of the second and the last are a period apart, and lie between the first and the last arrival. That
// holds however slow the machine is.
func (s *shop) neverOver(t testing.TB, events int, period time.Duration) {
	t.Helper()
	for customer := range s.arrived {
		s.neverOverOf(t, customer, events, period)
	}
}

// neverOverOf is neverOver for one customer.
func (s *shop) neverOverOf(t testing.TB, customer string, events int, period time.Duration) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.arrived[customer]
	for i := events + 1; i < len(all); i++ {
		if took := all[i].Sub(all[i-events-1]); took < period-time.Millisecond { // clocks of two processes
			t.Errorf("%s: %d orders within %s, and the limit is %d in %s", customer, events+2, took, events, period)
			return
		}
	}
}

const deferRules = `version: 1
identify:
  customer: client header X-Customer
rules:
  - name: orders
    match: POST /orders
    per: customer
    limits: 10/second
    defer: { keep: 1h, places: 20000, per_key: 5000, max_body: 64KiB }
`

// deferRulesOf is deferRules with another limit.
func deferRulesOf(limit string) string { return strings.Replace(deferRules, "10/second", limit, 1) }

// long reports whether the whole size is asked for.
func long() bool { return os.Getenv("TIDEGATE_LONG") != "" }

// orders is a crowd of customers, each of whom sends one order after the other, again and again until
// somebody answers.
type orders struct {
	t       testing.TB
	gateway func() string // where it is now
	pause   time.Duration
	mu      sync.Mutex
	at      map[string][]string // places of those that were accepted, by customer
	sent    sync.WaitGroup
}

func (o *orders) send(customer string, n int) {
	client := &http.Client{Timeout: 5 * time.Second}
	for i := range n {
		for {
			r, _ := http.NewRequest("POST", o.gateway()+"/orders", strings.NewReader(fmt.Sprint(i)))
			r.Header.Set("X-Customer", customer)
			r.Header.Set("Idempotency-Key", fmt.Sprint(customer, "-", i))
			res, err := client.Do(r)
			if err != nil { // it was killed
				time.Sleep(20 * time.Millisecond)
				continue
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == 202 {
				o.mu.Lock()
				o.at[customer] = append(o.at[customer], res.Header.Get("Location"))
				o.mu.Unlock()
			}
			if res.StatusCode == 202 || res.StatusCode == 200 {
				break
			}
			if res.StatusCode != 502 && res.StatusCode != 503 {
				o.t.Errorf("%s: order %d is answered %d", customer, i, res.StatusCode)
				return
			}
		}
		time.Sleep(o.pause)
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("number %d is %s", i, got[i])
		}
	}
	return "the end is missing"
}

// deferredStatus returns the status page of a request, for a customer.
func deferredStatus(w *sandbox, url, customer string) string {
	w.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("X-Customer", customer)
	res, err := once.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

// order sends an order, and returns the status and the place.
func (w *sandbox) order(gateway, customer, body string) (int, string) {
	w.Helper()
	r, err := http.NewRequest("POST", gateway+"/orders", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("X-Customer", customer)
	res, err := once.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("Location")
}
