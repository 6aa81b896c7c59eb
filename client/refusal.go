package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// refusal is what a response says about retrying a request that the server did not serve.
type refusal struct {
	final bool          // another try would not help
	named bool          // the server said when to come back, or when its limits reset
	after time.Duration // how long until then; 0 if it did not say
}

// refusalOf reports whether res is a refusal: 429, 503 with a Retry-After, 408 and 425, and every
// error that X-Should-Retry calls worth another try. A refusal is tried again unless it is final.
func refusalOf(res *http.Response, all []quota, now time.Time) (r refusal, ok bool) {
	never := strings.EqualFold(res.Header.Get("X-Should-Retry"), "false")
	var told bool
	r.after, told = retryAfter(res.Header, now)
	if !told && res.StatusCode == http.StatusTooManyRequests {
		r.after = resetOf(all)
	}
	r.named = r.after > 0
	switch {
	case shouldRetry(res):
		return r, true
	case res.StatusCode == http.StatusTooManyRequests:
		r.final = never || !told && neverFits(all)
		return r, true
	case res.StatusCode == http.StatusServiceUnavailable && told,
		res.StatusCode == http.StatusRequestTimeout, res.StatusCode == http.StatusTooEarly:
		r.final = never
		return r, true
	}
	return refusal{}, false
}

// shouldRetry reports whether the server itself calls another try worth it, by X-Should-Retry.
func shouldRetry(res *http.Response) bool {
	return res.StatusCode >= 400 && strings.EqualFold(res.Header.Get("X-Should-Retry"), "true")
}

// redirects reports whether res makes http.Client send another request.
func redirects(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// neverFits reports whether a refusal without a time is about the request itself: the server
// refused although it says that something remains of every limit. That is how package httplimit
// answers a request that costs more than its limit can ever admit.
func neverFits(all []quota) bool {
	for _, q := range all {
		if q.left <= 0 || q.unit != "" {
			return false
		}
	}
	return len(all) > 0
}

// accepted reports whether a server processed a request, whatever its answer was.
func accepted(res *http.Response) bool {
	return res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable
}

// transient reports whether a retry may help after an error of the transport.
func transient(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return false
	}
	var lookup *net.DNSError
	return !errors.As(err, &lookup) || !lookup.IsNotFound
}

// unsent reports whether an error shows that nothing was sent: no connection was made, or a layer
// below refused the request.
func unsent(err error) bool {
	var op *net.OpError
	return refusedBelow(err) || errors.As(err, &op) && op.Op == "dial"
}

// refusedBelow reports whether a layer below, such as a Provider, refused to send a request.
func refusedBelow(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// idempotent reports whether a request may be sent again although the server may have
// carried it out: by its method, as in RFC 9110, or because it has a key, as in net/http.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// replayable reports whether the body of a request can be sent again.
func replayable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// replay returns a copy of req with its body from the start.
func replay(req *http.Request) (*http.Request, error) {
	again := req.WithContext(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return again, nil
	}
	body, err := req.GetBody()
	again.Body = body
	return again, err
}
