package admin

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

// inForce are rules without files.
type inForce struct {
	live   *rules.Live
	status source.Status
}

func (r *inForce) Live() *rules.Live     { return r.live }
func (r *inForce) Status() source.Status { return r.status }

// desk is an admin API before a gate.
type desk struct {
	http.Handler
	t     testing.TB
	gate  *tidegate.Gate
	rules *inForce
	store *memory.Store
	board *board.Board
	log   *bytes.Buffer

	options Options // of the Handler
}

func newDesk(t *testing.T, src string, change func(*Options)) *desk {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte("version: 1\n"+src), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, rules: &inForce{live: rules.NewLive(set)}, log: new(bytes.Buffer)}
	store := memory.New()
	d.store, d.gate = store, tidegate.NewGate(d.rules.live, store)
	if d.board, err = board.Open(board.Options{Self: board.Node{ID: "self", Name: "web-1"}, OnChange: d.follow}); err != nil {
		t.Fatal(err)
	}
	o := Options{Rules: d.rules, Store: store, Board: d.board, Log: slog.New(slog.NewTextHandler(d.log, nil))}
	if change != nil {
		change(&o)
	}
	d.options, d.Handler = o, New(o)
	return d
}

// follow puts in force what is ordered, as tidegate serve does.
func (d *desk) follow(all []board.Record) {
	var measures []rules.Measure
	for _, r := range all {
		var m rules.Measure
		if err := json.Unmarshal(r.Body, &m); err != nil {
			d.t.Error(err)
		}
		measures = append(measures, m)
	}
	d.rules.live.SetMeasures(measures)
}

// ask sends a request as somebody on this machine would; change may make somebody
// else of them.
func (d *desk) ask(method, target, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:40000", "127.0.0.1:9090"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	described(d.t, method, target, w)
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// charge lets a request through the gate, or not.
func (d *desk) charge(t *testing.T, line string, as ...string) bool {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	q := Question{Method: method, URL: path, As: pairs(as)}
	r, err := q.request()
	if err != nil {
		t.Fatal(err)
	}
	return d.gate.Decide(t.Context(), r).OK
}

func pairs(all []string) map[string]string {
	m := make(map[string]string)
	for i := 0; i < len(all); i += 2 {
		m[all[i]] = all[i+1]
	}
	return m
}

// get asks where keys stand.
func (d *desk) get(t *testing.T, q Question) []Counter {
	t.Helper()
	return counters(t, d.ask("GET", "/keys?"+q.Query().Encode(), ""))
}

func (d *desk) reset(t *testing.T, q Question) []Counter {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return counters(t, d.ask("POST", "/keys/reset", string(body)))
}

func counters(t *testing.T, w *httptest.ResponseRecorder) []Counter {
	t.Helper()
	var k Keys
	if err := json.Unmarshal(w.Body.Bytes(), &k); w.Code != 200 || err != nil {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return k.Counters
}

// problem wants a sentence of why not.
func problem(t *testing.T, w *httptest.ResponseRecorder, status int, part string) {
	t.Helper()
	var p Problem
	err := json.Unmarshal(w.Body.Bytes(), &p)
	if err != nil || w.Code != status || p.Status != status || !strings.Contains(p.Detail, part) ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %q, %v; want %d and %q", w.Code, w.Body, err, status, part)
	}
}
