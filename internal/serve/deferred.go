package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/serve/deferq"
	"tidegate.dev/tidegate/internal/telemetry"
)

// deferred keeps the requests that rules defer. Every server has one; without a queue it keeps
// nothing.
type deferred struct {
	queue       atomic.Pointer[deferq.Queue] // nil means nothing is kept
	inRedis     bool                         // Redis keeps them; decided at the start
	appends     bool                         // rules append to streams of Redis; decided at the start
	credentials map[string]func() (string, error)
	observer    deferq.Observer

	mu    sync.Mutex
	err   error         // why the queue could not be opened; nil if it is open or was not needed
	redis *deferq.Redis // for requests or streams; nil if it is not open
}

// defers reports whether this process keeps requests that rules defer.
func (s *server) defers() bool {
	return (s.config.Defer.File != "" || s.deferred.inRedis) && s.config.Listen.Gateway.Open() && s.rules != nil
}

// prepareDeferred decides, by the rules at the start, whether Redis keeps requests, and checks that
// it can. It reads the credentials for attempts.
func (s *server) prepareDeferred() error {
	if s.shared != nil && s.rules != nil && s.config.Listen.Gateway.Open() {
		for _, n := range s.rules.live.Set().Needs() {
			if n.Field == "defer" {
				s.deferred.inRedis = s.config.Defer.File == ""
				s.deferred.appends = s.deferred.appends || n.Value != ""
			}
		}
	}
	if err := s.checkDeferredRedis(); err != nil {
		return err
	}
	s.deferred.credentials = make(map[string]func() (string, error))
	for _, item := range s.config.Defer.Credentials {
		name, file, _ := strings.Cut(item, "=")
		what := "the header " + name + " of deferred requests"
		f, err := followFile(what, file, func(file string) (string, error) { return readSecret(file, what) }, s.log)
		if err != nil {
			return err
		}
		s.deferred.credentials[http.CanonicalHeaderKey(name)] = func() (string, error) { return f.get(), nil }
	}
	return nil
}

// openDeferred opens the file, or Redis. If the file is damaged, the gateway continues without it:
// requests that rules would defer are refused, and health and the log say why. handed means that
// the counters in memory are those of the predecessor.
func (s *server) openDeferred(handed bool) {
	if !s.defers() {
		return
	}
	c := s.config.Defer
	store, streams, err := s.openDeferredStore()
	s.deferred.failed(err)
	if err != nil {
		s.log.Error("requests are refused that rules would defer", "err", err)
		return
	}
	if s.deferred.observer == nil {
		s.deferred.observer = s.metrics.Deferring()
		s.metrics.WatchDeferred(s.deferred.stats)
	}
	front := httplimit.Options{ClientIP: httplimit.ClientIP{Trusted: s.config.Trust.Proxies, TrustUnix: s.config.Trust.Unix}}
	var strip []string
	for _, name := range c.Strip {
		strip = append(strip, http.CanonicalHeaderKey(name))
	}
	s.deferred.queue.Store(deferq.New(deferq.Options{
		Store: store, Max: c.Max, Streams: streams,
		Rules: s.rules.Live(), Counters: s.limited, Forgetful: s.shared == nil && !handed, Strict: s.deferred.inRedis,
		HTTP: front, Identify: func(r *http.Request) map[string]string { return s.rules.Live().Who(front.Request(r)) },
		Send: s.replay, Path: c.Path + "/", Timeout: c.Timeout,
		Strip: strip, Credentials: s.deferred.credentials, Observer: s.deferred.observer, Log: s.log,
	}))
}

// errNoGateway makes attempts wait until the gateway is open.
var errNoGateway = errors.New("the gateway is not open yet")

// replay sends a kept request. It returns false if no upstream can have received any of it.
func (s *server) replay(r *http.Request) (*http.Response, bool, error) {
	g := s.gateway.current.Load()
	if g == nil {
		return nil, false, errNoGateway
	}
	return g.Replay(r)
}

// behind returns counters that refuse live requests of a key while others of that key are kept.
func (s *server) behind(counters tidegate.Store) tidegate.Store {
	if !s.defers() {
		return counters
	}
	return &deferq.Layer{Backend: chain.Adapt(counters), Busy: s.deferred.busy}
}

// busy reports whether requests of a line are kept.
func (d *deferred) busy(ctx context.Context, l deferq.Line) (bool, error) {
	q := d.queue.Load()
	if q == nil {
		return false, nil
	}
	return q.Store().Busy(ctx, l)
}

// deferrer returns what the gateway keeps requests with; nil if it keeps none.
func (s *server) deferrer() gateway.Deferrer {
	if !s.defers() {
		return nil
	}
	return &s.deferred
}

// Keep implements [gateway.Deferrer].
func (d *deferred) Keep(w http.ResponseWriter, r *http.Request, header http.Header, decision *tidegate.Decision) bool {
	q := d.queue.Load()
	return q != nil && q.Keep(w, r, header, decision)
}

// ServeHTTP implements [gateway.Deferrer].
func (d *deferred) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if q := d.queue.Load(); q != nil {
		q.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "5")
	http.Error(w, "The status cannot be read right now; try again later.", http.StatusServiceUnavailable)
}

// failed records the result of opening the queue.
func (d *deferred) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// why returns why nothing is kept; nil if requests can be.
func (d *deferred) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil && d.queue.Load() == nil {
		return errors.New("nothing is deferred here: the setting defer.file names no file, and the store is not Redis, or no rule defers")
	}
	return d.err
}

// lastAttempts is how long rest and close wait for attempts in flight. Those that are cut off are
// repeated later.
const lastAttempts = 5 * time.Second

// rest stops sending, while requests are still kept.
func (d *deferred) rest() {
	if q := d.queue.Load(); q != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastAttempts)
		defer cancel()
		q.Rest(ctx)
	}
}

// close stops sending and closes the store.
func (d *deferred) close() error {
	var err error
	if q := d.queue.Swap(nil); q != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastAttempts)
		defer cancel()
		err = q.Close(ctx)
	}
	d.mu.Lock()
	r := d.redis
	d.redis = nil
	d.mu.Unlock()
	if r != nil {
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return fmt.Errorf("close what keeps deferred requests: %w", err)
	}
	return nil
}

// statsTimeout is how long /metrics and /healthz wait for the store.
const statsTimeout = time.Second

// stats returns the totals for /metrics; zero if the store does not answer in time.
func (d *deferred) stats() telemetry.DeferredStats {
	q := d.queue.Load()
	if q == nil {
		return telemetry.DeferredStats{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	s, err := q.Store().Stats(ctx)
	if err != nil {
		return telemetry.DeferredStats{}
	}
	return telemetry.DeferredStats{
		Waiting: s.Rules, Done: s.Done, Dead: s.Dead, Lines: s.Lines, Bytes: s.Bytes, Max: s.Max, Oldest: s.Oldest, Unwritten: s.Unwritten, Open: s.Err == nil,
	}
}

// warnings returns the warnings for /healthz.
func (d *deferred) warnings() []string {
	d.mu.Lock()
	err := d.err
	d.mu.Unlock()
	if err != nil {
		return []string{"requests are refused that rules would defer: " + err.Error()}
	}
	if q := d.queue.Load(); q != nil {
		ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
		defer cancel()
		if s, err := q.Store().Stats(ctx); err == nil && s.Err != nil {
			return []string{"deferred requests cannot be kept, or what became of them cannot be recorded: " + s.Err.Error()}
		}
	}
	return nil
}
