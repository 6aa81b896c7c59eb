package client

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// What a Transport does unless it is told otherwise.
const (
	DefaultMaxWait    = time.Minute
	DefaultMaxTries   = 8
	DefaultBackoff    = 100 * time.Millisecond
	DefaultRetryShare = 0.2
	DefaultPaceBelow  = 0.1
	DefaultThrottle   = 2
	DefaultMaxHosts   = 1024
)

// Transport is an http.RoundTripper that behaves well towards servers with limits. The zero
// value is ready to use. Its fields must not be changed after the first request.
//
// A request that is refused with 429, 425, or 503 and a Retry-After, is sent again if its
// body can be (see http.Request.GetBody), whatever its method. The wait is what the server
// asks for, or a backoff that doubles, with jitter that makes it longer and never shorter. Of
// several Retry-After, the longest counts.
// Until the time that a server has named, no other request is sent to it either. After 408 or an
// error of the transport, only idempotent requests are sent again.
//
// A refusal is returned as it came, with its body, when waiting would not help or would be
// too long: beyond MaxWait, beyond the deadline of the context, with X-Should-Retry: false,
// or without a time although something remains of every limit in its headers, which means
// that the request itself costs too much. Every wait ends with the context of the request.
type Transport struct {
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
	// MaxWait is how long a request waits at most, in all its tries together; 0 means
	// DefaultMaxWait, negative that it never waits.
	MaxWait time.Duration
	// MaxTries is how often a request is sent at most; 0 means DefaultMaxTries.
	MaxTries int
	// Backoff is the longest wait after the first failure for which the server has not
	// named a time. It doubles with every try, up to half a minute; 0 means DefaultBackoff.
	Backoff time.Duration
	// RetryShare bounds the retries for which no server has named a time by a 429: so many
	// of them for each request, and ten beyond that; 0 means DefaultRetryShare, negative none.
	RetryShare float64
	// PaceBelow is the share of a limit from which on requests are spread over the time
	// until the limit is renewed, if the headers of responses tell what remains; 0 means
	// DefaultPaceBelow, negative never.
	PaceBelow float64
	// Throttle is the K of adaptive throttling: once a server accepts less than one in K of
	// the requests of the last ten seconds, the excess is not sent, and is answered with
	// ErrThrottled; one request a second is sent in any case. 0 means DefaultThrottle,
	// negative never.
	Throttle float64
	// Key tells apart what has limits of its own, for example host and account together; nil means
	// the host.
	Key func(*http.Request) string
	// MaxHosts is how many keys are remembered; 0 means DefaultMaxHosts. Those that hold
	// no request back are forgotten first.
	MaxHosts int
	// OnEvent is called with what happens to requests, for logs and metrics; nil means never. It
	// may be called from many goroutines at once.
	OnEvent func(*http.Request, Event)

	hosts hosts
}

// RoundTrip implements http.RoundTripper. The error is a [*RefusedError] if the request was
// not sent because of what is known of the server.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	now := time.Now()
	c := &call{t: t, req: req, host: t.hosts.find(t.key(req), t.maxHosts(), now)}
	if err := c.admit(); err != nil {
		closeBody(req)
		return nil, err
	}
	var before tried
	for attempt := req; ; {
		c.try++
		res, err := t.base().RoundTrip(attempt)
		if c.try > 1 && refusedBelow(err) { // the previous answer stands
			return before.res, before.err
		}
		v := c.classify(res, err)
		if !v.again {
			if err == nil && redirects(res) {
				return c.awaitRedirect(res)
			}
			return res, err
		}
		shelve(res)
		before = tried{res, err}
		if waitErr := c.await(v.wait); waitErr != nil {
			if refusedBelow(waitErr) { // the wait would be too long: the last answer stands
				return res, err
			}
			return nil, waitErr
		}
		next, bodyErr := replay(req)
		if bodyErr != nil {
			return res, err
		}
		attempt = next
	}
}

// CloseIdleConnections closes those of Base, for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() { closeIdle(t.base()) }

func closeIdle(base http.RoundTripper) {
	if b, ok := base.(interface{ CloseIdleConnections() }); ok {
		b.CloseIdleConnections()
	}
}

// tried is the result of a try.
type tried struct {
	res *http.Response
	err error
}

func (t *Transport) key(req *http.Request) string {
	if t.Key != nil {
		return t.Key(req)
	}
	if req.URL == nil { // Base returns the error
		return ""
	}
	return strings.ToLower(req.URL.Host)
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func (t *Transport) maxWait() time.Duration { return max(cmp.Or(t.MaxWait, DefaultMaxWait), 0) }
func (t *Transport) maxTries() int          { return cmp.Or(t.MaxTries, DefaultMaxTries) }
func (t *Transport) maxHosts() int          { return max(cmp.Or(t.MaxHosts, DefaultMaxHosts), 1) }
func (t *Transport) paceBelow() float64     { return cmp.Or(t.PaceBelow, DefaultPaceBelow) }
func (t *Transport) throttle() float64      { return cmp.Or(t.Throttle, DefaultThrottle) }
func (t *Transport) retryShare() float64    { return cmp.Or(t.RetryShare, DefaultRetryShare) }

// maxBackoff is the longest wait if no server has named a time.
const maxBackoff = 30 * time.Second

// backoff returns the longest wait after that many tries.
func (t *Transport) backoff(tries int) time.Duration {
	first := cmp.Or(t.Backoff, DefaultBackoff)
	if tries > 30 || first > maxBackoff>>(tries-1) {
		return maxBackoff
	}
	return first << (tries - 1)
}

func (t *Transport) tell(req *http.Request, e Event) {
	if t.OnEvent != nil {
		t.OnEvent(req, e)
	}
}
