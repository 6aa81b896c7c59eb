// Package feed serves rules over HTTP to followers: one bundle as JSON, with an ETag, and a long
// poll for the next one. Package httpsource is the client.
//
//	f := feed.New(feed.Options{})
//	f.Set(bundle) // whenever there is another
//	http.Handle("/rules/bundle", f)
//
// If building a bundle is expensive, [Options.Load] builds it on demand.
//
// A follower asks with `If-None-Match` and `Prefer: wait=60`. It gets an answer as soon as the
// rules change, or 304 after the wait. A waiting follower costs only its connection. Followers say
// who they are and which rules they apply, and [Feed.Followers] lists them. Authentication is up to
// the surrounding handler.
package feed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// Options of [New]. The zero value is fine.
type Options struct {
	// Waiting is how many followers may wait at once; the others are answered at once, and ask
	// again in a second. 0 means 1000.
	Waiting int
	// Load returns the bundle to serve; nil means that Set is called. The first request after the
	// start, and after Changed, calls it, and others wait for it. Followers are told its error.
	Load func() (*source.Bundle, error)
}

const (
	defaultWaiting = 1000
	// MaxWait is how long a follower may wait, whatever it asks for.
	MaxWait = 5 * time.Minute
	// slack is how long a request may take beyond its wait.
	slack = 30 * time.Second
)

// Feed is an [http.Handler] that serves the newest rules. Close releases waiting followers.
type Feed struct {
	o       Options
	loading chan struct{} // has an element while Load is called

	mu        sync.Mutex
	now       *edition      // under mu; nil means there is none
	why       string        // under mu; why now is nil
	changed   chan struct{} // under mu; closed when now changes
	waiting   int           // under mu
	stale     bool          // under mu; Load has to be called
	followers followers     // under mu
	closed    chan struct{}
}

// edition is an encoded bundle.
type edition struct {
	etag, revision string
	text, smaller  []byte // plain and gzip
}

// New returns a Feed without rules.
func New(o Options) *Feed {
	if o.Waiting == 0 {
		o.Waiting = defaultWaiting
	}
	return &Feed{
		o: o, why: "There are no rules yet.", stale: o.Load != nil,
		loading: make(chan struct{}, 1), changed: make(chan struct{}), closed: make(chan struct{}), followers: make(followers),
	}
}

// Changed makes the feed call Load again: at once if followers wait, otherwise with the next
// request. Without a Load it does nothing.
func (f *Feed) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = f.o.Load != nil
	close(f.changed)
	f.changed = make(chan struct{})
}

// refresh calls Load if it is due.
func (f *Feed) refresh() {
	f.loading <- struct{}{}
	defer func() { <-f.loading }()
	f.mu.Lock()
	due := f.stale
	f.stale = false
	f.mu.Unlock()
	if !due {
		return
	}
	b, err := f.o.Load()
	if err == nil {
		err = f.Set(b)
	}
	if err != nil {
		f.Withhold("The rules cannot be served: " + err.Error() + ".")
	}
}

// Withhold makes the feed serve nothing, and tell followers why.
func (f *Feed) Withhold(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
	if f.now != nil {
		f.replaceLocked(nil)
	}
}

func (f *Feed) replaceLocked(e *edition) {
	f.now = e
	close(f.changed)
	f.changed = make(chan struct{})
}

// refuse answers with a problem of RFC 9457.
func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the follower may be gone
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}

// Set makes b the bundle to serve, and wakes waiting followers. On an error, which is that of
// [Encode], the previous bundle stays.
func (f *Feed) Set(b *source.Bundle) error {
	text, err := Encode(b)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	e := &edition{etag: `"` + hex.EncodeToString(sum[:12]) + `"`, revision: b.Revision, text: text}
	var smaller bytes.Buffer
	z := gzip.NewWriter(&smaller)
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	e.smaller = smaller.Bytes()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != nil && f.now.etag == e.etag {
		return nil
	}
	f.replaceLocked(e)
	return nil
}

// Close answers all waiting followers; later ones do not wait.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
}

// ServeHTTP answers GET and HEAD.
func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "The rules can be read here, by GET and HEAD.")
		return
	}
	who := reportOf(r)
	counted := f.begin(who, r.RemoteAddr)
	wait := waitOf(r)
	if wait > 0 { // the server's own read timeout may be shorter
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wait + slack)) // there may be no connection
	}
	e, why, waited := f.await(r, wait)
	if counted {
		f.end(who.Node)
	}
	h := w.Header()
	h.Set("Vary", "Accept-Encoding, Prefer")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	if waited {
		h.Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	switch {
	case e == nil:
		h.Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, why)
		return
	case matches(r.Header.Values("If-None-Match"), e.etag):
		h.Set("ETag", e.etag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("ETag", e.etag)
	h.Set("Content-Type", MediaType)
	text := e.text
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		text = e.smaller
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(text) // the follower may be gone
	}
}

// await returns the edition to serve: as soon as it differs from what the follower has, or after
// the wait. If there is none, why says why; waited reports whether the follower was allowed to
// wait.
func (f *Feed) await(r *http.Request, wait time.Duration) (e *edition, why string, waited bool) {
	f.refresh()
	f.mu.Lock()
	defer f.mu.Unlock()
	have := r.Header.Values("If-None-Match")
	if wait == 0 || f.now != nil && !matches(have, f.now.etag) || f.waiting >= f.o.Waiting {
		return f.now, f.why, false
	}
	f.waiting++
	defer func() { f.waiting-- }()
	over := time.NewTimer(wait)
	defer over.Stop()
	was := f.now
	for f.now == was || was != nil && f.now != nil && matches(have, f.now.etag) {
		if !f.sleepLocked(r, over.C) {
			break
		}
	}
	return f.now, f.why, true
}

// sleepLocked waits for a change, with mu released. It returns false if the wait has ended without
// one.
func (f *Feed) sleepLocked(r *http.Request, over <-chan time.Time) bool {
	changed := f.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
		f.refresh()
		return true
	case <-over:
	case <-f.closed:
	case <-r.Context().Done():
	}
	return false
}

// waitOf returns how long a follower is willing to wait: Prefer: wait=SECONDS, of RFC 7240.
func waitOf(r *http.Request) time.Duration {
	for _, line := range r.Header.Values("Prefer") {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			name, value, _ := strings.Cut(part, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			if n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31); err == nil {
				return min(time.Duration(n)*time.Second, MaxWait)
			}
		}
	}
	return 0
}

// matches reports whether If-None-Match names etag, or anything.
func matches(lines []string, etag string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == etag {
				return true
			}
		}
	}
	return false
}

func acceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
			q = strings.ReplaceAll(q, " ", "")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") && q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000" {
				return true
			}
		}
	}
	return false
}
