package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

// sourceRules are rules with a limit and a number of instances that change.
func sourceRules(few, instances int) string {
	return fmt.Sprintf(`version: 1
instances: %d
identify: { customer: query customer }
rules:
  - { name: load, match: GET /healthz, per: everyone, limits: { rate: 200000000/day, algorithm: fixed_window } }
  - { name: few, match: GET /api/things, per: customer, limits: %d/day }
  - { name: shares, match: GET /api/shares, per: customer, limits: 60/day, consistency: split }
`, instances, few)
}

// ruleServer is a place that rules come from.
type ruleServer interface {
	at() string           // HOST:PORT
	url(at string) string // of the rules, if it is reached there
	publish(t *testing.T, text string)
	kill()
	start()
}

// archived is a real server with an archive.
type archived struct {
	server interface {
		Start()
		Kill()
	}
	addr    string
	format  string // of the URL
	archive source.Archive
}

func (a *archived) at() string           { return a.addr }
func (a *archived) url(at string) string { return fmt.Sprintf(a.format, at) }
func (a *archived) kill()                { a.server.Kill() }
func (a *archived) start()               { a.server.Start() }

// publish tries for a while: the connection of the archive may not have noticed yet that the server is
// back.
func (a *archived) publish(t *testing.T, text string) {
	t.Helper()
	b := &source.Bundle{Edition: source.Edition{Author: "ann", Reason: "a test"}, Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte(text)}}
	var err error
	if !testdep.Await(testTimeout, func() bool {
		head := ""
		var all []source.Edition
		if all, err = a.archive.History(t.Context()); err != nil {
			return false
		}
		if len(all) > 0 {
			head = all[0].Revision
		}
		_, err = a.archive.Publish(t.Context(), b, head)
		return err == nil
	}) {
		t.Fatal(err)
	}
}

// longPoll is an HTTP server that answers when the rules have changed.
type longPoll struct {
	addr   string
	server *http.Server

	mu      sync.Mutex
	text    string
	version int
	changed chan struct{}
}

func (l *longPoll) at() string           { return l.addr }
func (l *longPoll) url(at string) string { return "http://" + at + "/rules.yaml" }
func (l *longPoll) kill()                { _ = l.server.Close() }

func (l *longPoll) start() {
	l.server = &http.Server{Addr: l.addr, Handler: l}
	go func(s *http.Server) { _ = s.ListenAndServe() }(l.server)
}

func (l *longPoll) publish(_ *testing.T, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.version = text, l.version+1
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}

func (l *longPoll) now() (text, tag string, changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text, fmt.Sprintf(`"v%d"`, l.version), l.changed
}

func (l *longPoll) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, tag, changed := l.now()
	if seconds, ok := strings.CutPrefix(r.Header.Get("Prefer"), "wait="); ok && r.Header.Get("If-None-Match") == tag {
		wait, _ := strconv.Atoi(seconds)
		select {
		case <-changed:
			text, tag, _ = l.now()
		case <-r.Context().Done():
			return
		case <-time.After(time.Duration(wait) * time.Second):
		}
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("Preference-Applied", "wait")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write([]byte(text)) // the client may have gone
}
