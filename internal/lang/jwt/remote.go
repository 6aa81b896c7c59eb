package jwt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/durable"
)

const (
	// DefaultRefresh is how old a key set gets before it is fetched again.
	DefaultRefresh = 10 * time.Minute
	// FetchWait is how long a request may wait for keys that are being fetched.
	FetchWait = 200 * time.Millisecond
	// firstFetchWait is how long New waits for the first set, if there is no copy of it.
	firstFetchWait = fetchTimeout + time.Second

	minRefresh = 30 * time.Second // whatever Cache-Control says
	maxBackoff = time.Minute
	maxWait    = 5 * time.Minute // whatever Retry-After says

	// Unknown key ids cause so many fetches at once, and one per this time in the long
	// run: anybody can invent a key id.
	unknownBurst = 5
	unknownEvery = 10 * time.Second
)

// remote keeps the keys of a Verifier the same as those of a URL. It has no goroutine of
// its own: a fetch runs when somebody asks for a token, or calls Refresh, and it is due.
type remote struct {
	v       *Verifier
	fetcher fetcher
	refresh time.Duration
	copy    string
	due     atomic.Int64 // Unix nanoseconds: when to fetch next

	mu       sync.Mutex
	flight   chan struct{} // closed when the fetch under way has ended; nil means there is none
	started  time.Time     // the last fetch
	text     []byte        // what the keys were read from
	fetched  time.Time     // when the URL last had them; zero means they are a copy, or none
	err      error         // of the last fetch
	since    time.Time     // when err began
	copyErr  error         // of the last write of the copy
	ok, bad  int64         // fetches
	inRow    int           // failed fetches in a row
	unknown  int           // fetches that unknown keys may still cause
	refilled time.Time     // when unknown was last refilled
}

// Status is how the keys of a URL are.
type Status struct {
	URL           string
	Keys          int
	FetchedAt     time.Time // when the URL last had them; zero means they are of a copy, or there are none
	OK, Failed    int64     // fetches
	Err, CopyErr  error     // of the last fetch; of the last write of the copy
	Since         time.Time // when Err began
	Copied, Never bool      // they are of a copy; there are none yet
}

// connect takes the copy of the keys, if there is one, and fetches them. It waits only if
// there is none.
func (v *Verifier) connect() error {
	r := &remote{v: v, refresh: v.config.Refresh, copy: v.config.CopyFile, unknown: unknownBurst, refilled: time.Now()}
	if r.refresh <= 0 {
		r.refresh = DefaultRefresh
	}
	var err error
	if r.fetcher, err = newFetcher(v.config.URL); err != nil {
		return err
	}
	v.remote = r
	v.inUse.Store(&epoch{})
	had := r.readCopy()
	if done := r.fetch(); done != nil && !had {
		wait(done, firstFetchWait)
	}
	return nil
}

// readCopy reports whether there was one. That it is not there yet, or no good, is not worth
// a word: the URL has it.
func (r *remote) readCopy() bool {
	if r.copy == "" {
		return false
	}
	text, err := bounded.ReadFile(r.copy, maxFile)
	if err != nil {
		return false
	}
	keys, err := parsePublished(text)
	if err != nil {
		return false
	}
	r.text = text
	r.v.inUse.Store(&epoch{keys: keys})
	return true
}

// asked fetches what is due, and waits a little for it if reason is that a key is not known.
// It reports whether a token should be looked at again.
func (r *remote) asked(reason Reason) bool {
	now := time.Now()
	if now.UnixNano() >= r.due.Load() {
		r.fetch()
	}
	if reason != UnknownKey {
		return false
	}
	was := r.v.inUse.Load()
	done, started := r.fetchUnknown(now)
	if done == nil {
		return false
	}
	wait(done, started.Add(FetchWait).Sub(now))
	return r.v.inUse.Load() != was
}

// wait reports whether done was closed within d.
func wait(done <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// fetch starts a fetch if one is due, unless one is under way.
func (r *remote) fetch() (done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flight == nil && time.Now().UnixNano() >= r.due.Load() {
		r.startLocked()
	}
	return r.flight
}

// fetchUnknown is fetch for a key that is not known, which may be due earlier. While the URL
// fails, its backoff holds for these as well.
func (r *remote) fetchUnknown(now time.Time) (done <-chan struct{}, started time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := int(now.Sub(r.refilled) / unknownEvery); n > 0 {
		r.unknown = min(r.unknown+n, unknownBurst)
		r.refilled = r.refilled.Add(time.Duration(n) * unknownEvery)
	}
	if r.flight == nil && r.err == nil && r.unknown > 0 {
		r.unknown--
		r.startLocked()
	}
	return r.flight, r.started
}

func (r *remote) startLocked() {
	done := make(chan struct{})
	r.flight, r.started = done, time.Now()
	go func() {
		got, err := r.fetcher.get()
		r.mu.Lock()
		r.takeLocked(got, err)
		r.flight = nil
		r.mu.Unlock()
		close(done)
	}()
}

// takeLocked puts what was fetched into use. What is wrong leaves the keys as they are.
func (r *remote) takeLocked(got fetched, err error) {
	now := time.Now()
	if err == nil && !got.unchanged && !bytes.Equal(got.text, r.text) {
		var keys keySet
		if keys, err = parsePublished(got.text); err != nil {
			err = fmt.Errorf("the JSON Web Key Set of %s: %w", r.fetcher.url.Redacted(), err)
		} else {
			r.text = got.text
			r.v.inUse.Store(&epoch{keys: keys})
			r.copyErr = r.writeCopy()
		}
	} else if err == nil && r.copyErr != nil {
		r.copyErr = r.writeCopy()
	}
	if err != nil {
		r.bad++
		r.inRow++
		if r.err == nil {
			r.since = now
		}
		r.err = err
		r.due.Store(now.Add(r.backoff(err)).UnixNano())
		return
	}
	r.fetcher.etag = got.etag
	r.ok++
	r.inRow, r.err, r.since, r.fetched = 0, nil, time.Time{}, now
	next := r.refresh
	if got.maxAge > 0 {
		next = min(next, max(got.maxAge, minRefresh))
	}
	r.due.Store(now.Add(next).UnixNano())
}

// backoff returns how long to wait after a failure: a second, and twice as long after each
// further one, with jitter so that a fleet does not come back all at once.
func (r *remote) backoff(err error) time.Duration {
	d := min(time.Second<<min(r.inRow-1, 10), maxBackoff)
	d = d*3/4 + rand.N(d/2)
	var busy *busyError
	if errors.As(err, &busy) && busy.after > d {
		d = min(busy.after, maxWait)
	}
	return d
}

// writeCopy keeps what was fetched for a start while the URL does not answer.
func (r *remote) writeCopy() error {
	if r.copy == "" {
		return nil
	}
	return durable.WriteFile(r.copy, r.text, 0o600)
}

// Refresh has the keys of a URL fetched if that is due. It does not wait. Where nobody calls
// it, tokens do the same; then keys that the issuer has withdrawn stay in use until the next
// token comes.
func (v *Verifier) Refresh() {
	if v.remote != nil && time.Now().UnixNano() >= v.remote.due.Load() {
		v.remote.fetch()
	}
}

// Status tells how the keys of a URL are; it is not ok where they are in a file.
func (v *Verifier) Status() (s Status, ok bool) {
	r := v.remote
	if r == nil {
		return s, false
	}
	keys := len(v.inUse.Load().keys)
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{
		URL: r.fetcher.url.Redacted(), Keys: keys, FetchedAt: r.fetched, OK: r.ok, Failed: r.bad,
		Err: r.err, CopyErr: r.copyErr, Since: r.since,
		Copied: keys > 0 && r.fetched.IsZero(), Never: keys == 0,
	}, true
}
