package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/readings"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// witness knows what became of one request at a time.
type witness struct {
	mu      sync.Mutex
	held    []string // names of the limits that were asked
	reached []string // targets that the upstream got
}

func (w *witness) decided(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range checks {
		w.held = append(w.held, c.Limit.Name)
	}
}

func (w *witness) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached = append(w.reached, r.RequestURI)
}

func (w *witness) report() (held, reached []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, reached = w.held, w.reached
	w.held, w.reached = nil, nil
	return held, reached
}

// No spelling reaches a route past its rules, whichever server it goes to: a route that
// is denied, one that is limited, and one that is not exempt.
func TestEveryReadingOfRealServers(t *testing.T) {
	testdep.SkipUnderRace(t)
	table := readings.Read(t)
	targets := table.Targets("")
	f := func(name string, p Paths, ignoreCase bool) {
		for _, proto := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+" "+proto, func(t *testing.T) {
				w := new(witness)
				upstream := httptest.NewServer(w)
				t.Cleanup(upstream.Close)
				set, err := rules.Parse("rules.yaml", []byte(readings.Rules), rules.Config{IgnoreCase: ignoreCase})
				if err != nil {
					t.Fatal(err)
				}
				gate := tidegate.NewGate(set, memory.New()).Observe(w.decided)
				o := Options{Gate: gate, Upstreams: []*url.URL{parseURL(t, upstream.URL)}, Paths: p}
				send := sendHTTP1
				if proto == "HTTP/2" {
					send = sendHTTP2
				}
				ask := send(t, o)
				passed := 0
				for _, target := range targets {
					ask(target)
					held, reached := w.report()
					if len(reached) == 0 {
						continue
					}
					passed++
					if len(reached) != 1 {
						t.Errorf("%q was sent %d times: %q", target, len(reached), reached)
					}
					escapes, known := table.Escapes(reached[0], held, ignoreCase)
					if !known {
						t.Errorf("%q was sent as %q, which no server was asked for: run make conformance", target, reached[0])
					}
					for _, e := range escapes {
						t.Errorf("%q: %s", target, e)
					}
				}
				if passed < 200 || passed > len(targets)*2/3 {
					t.Errorf("%d of %d targets reached the upstream", passed, len(targets))
				}
				t.Logf("%d of %d targets reached the upstream", passed, len(targets))
			})
		}
	}
	f("as it is", Paths{}, false)
	f("slashes merged, dots cleaned", Paths{MergeSlashes: true, CleanDots: true}, false)
	f("encoded slashes", Paths{EncodedSlash: true}, false)
	f("everything", Paths{EncodedSlash: true, MergeSlashes: true, CleanDots: true}, false)
	f("any case", Paths{}, true)
	f("everything in any case", Paths{EncodedSlash: true, MergeSlashes: true, CleanDots: true}, true)
}

// sendHTTP1 returns what sends a target and waits for the answer.
func sendHTTP1(t *testing.T, o Options) func(target string) {
	g := start(t, o, nil)
	var conn net.Conn
	var in *bufio.Reader
	return func(target string) {
		for again := conn != nil; ; again = false { // it may have been closed
			if conn == nil {
				conn = dial(t, g.addr)
				in = bufio.NewReader(conn)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: example.com\r\n\r\n", target)
			res, err := http.ReadResponse(in, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
			}
			if err == nil && !res.Close {
				return
			}
			conn.Close()
			conn = nil
			if err == nil {
				return
			}
			if !again {
				t.Fatalf("%q: %v", target, err)
			}
		}
	}
}

func sendHTTP2(t *testing.T, o Options) func(target string) {
	config, _ := certificate(t)
	g := start(t, o, config)
	c := dialH2Wire(t, g.addr)
	return func(target string) {
		c.send("GET", target, nil, "")
		if _, ok := c.answered(); !ok {
			c.conn.Close()
			c = dialH2Wire(t, g.addr)
		}
	}
}
