package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// upstream is one server behind the gateway.
type upstream struct {
	scheme    string
	host      string
	name      string   // scheme://host
	base      *url.URL // whose path is prepended to all others; nil if it is the root
	transport *http.Transport
	direct    *directTransport // nil if everything goes through transport
	limit     time.Duration    // Limits.Upstream; 0 means none
	http2     atomic.Bool      // the last response was HTTP/2
	inflight  atomic.Int64
	health    health
}

// newUpstream returns an upstream; reclaim frees idle connections when no more can be
// opened.
func newUpstream(u *url.URL, o *Options, reclaim func()) *upstream {
	dial := newDial(o, reclaim)
	made := &upstream{
		scheme:    u.Scheme,
		host:      u.Host,
		name:      u.Scheme + "://" + u.Host,
		transport: newTransport(o, boundWrites(dial, o.Limits.Upstream)),
		limit:     o.Limits.Upstream,
		health:    health{threshold: o.Health.UnhealthyAfter, probeEvery: o.Health.Every},
	}
	if strings.Trim(u.Path, "/") != "" {
		made.base = u
	}
	if u.Scheme == "http" && canCheckIdle && isASCII(u.Host) && o.Transport.Idle >= 0 { // http.Transport translates other names to Punycode
		made.direct = &directTransport{
			dial: dial, address: withDefaultPort(u.Host),
			headTimeout: o.Limits.Upstream, idleTimeout: o.Transport.Idle, maxIdle: o.Transport.IdleConns,
		}
	}
	return made
}

func withDefaultPort(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if port != "" {
			return host
		}
		host = name
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
}

// send sends a request and returns the answer; see balancer.send.
func (u *upstream) send(out *outgoing) (*http.Response, error) {
	if u.direct.handles(out) {
		return u.direct.send(out, u.targetFor(out.in.URL), cmp.Or(out.in.Host, u.host))
	}
	r := out.request(u)
	if r.Body == nil && !u.http2.Load() {
		preventResend(r)
	}
	var connected *atomic.Bool
	if u.scheme == "https" { // without TLS, a dialed connection can be used
		r, connected = traceSent(r)
	}
	var t *taking
	if u.scheme == "https" && u.limit > 0 {
		r, t = takeWithin(r, u.limit)
	}
	res, err := out.roundTrip(u, r)
	if t != nil && t.end() {
		if err == nil { // its body can be read no more
			_ = res.Body.Close()
		}
		return nil, errNotTaken
	}
	if err != nil && connected != nil && !connected.Load() && !notConnected(err) {
		err = &connectError{err}
	}
	if err == nil && u.http2.Load() != (res.ProtoMajor == 2) {
		u.http2.Store(res.ProtoMajor == 2)
	}
	return res, err
}

func (u *upstream) closeIdle() {
	if u.direct != nil {
		u.direct.CloseIdleConnections()
	}
	u.transport.CloseIdleConnections()
}

// newTransport returns an http.Transport that keeps enough idle connections for a burst, and does
// not ask for compression that the client did not ask for.
func newTransport(o *Options, dial dialFunc) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        o.Transport.TLS.Clone(), // http.Transport modifies it
		TLSHandshakeTimeout:    o.Transport.Connect,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    o.Transport.IdleConns,
		IdleConnTimeout:        max(0, o.Transport.Idle),
		DisableKeepAlives:      o.Transport.Idle < 0,
		ResponseHeaderTimeout:  o.Limits.Upstream,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHead,
	}
}

// notConnected reports whether the request failed before any of it was sent.
func notConnected(err error) bool {
	var connect *connectError
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	return errors.As(err, &connect) || errors.As(err, &certificate) || errors.As(err, &noTLS)
}

// targetFor returns the request target with which a request for target is sent to u.
func (u *upstream) targetFor(target *url.URL) string {
	if u.base == nil {
		return target.RequestURI()
	}
	return u.urlFor(target).RequestURI()
}

// urlFor returns the URL of target at u.
func (u *upstream) urlFor(target *url.URL) *url.URL {
	at := *target
	at.Scheme, at.Host = u.scheme, u.host
	if u.base != nil && at.Path != "*" {
		at.RawPath = joinPath(u.base.EscapedPath(), at.EscapedPath()) // ignored if it is the default encoding
		at.Path = joinPath(u.base.Path, at.Path)
	}
	return &at
}

// joinPath returns path below base. An empty path becomes a slash.
func joinPath(base, path string) string {
	joined := "/" + strings.Trim(base, "/") + path
	if path == "" {
		joined += "/"
	}
	return joined
}
