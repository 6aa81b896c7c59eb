package gateway

import (
	"context"
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
	name      string   // both
	base      *url.URL // what all paths are below; nil: the root
	transport *http.Transport
	straight  *straight   // nil: everything is for the transport
	http2     atomic.Bool // it spoke HTTP/2 the last time
	inflight  atomic.Int64
	health    health
}

// newUpstream makes an upstream; reclaim frees connections when there are none left to
// be had.
func newUpstream(u *url.URL, o *Options, reclaim func()) *upstream {
	made := &upstream{
		scheme:    u.Scheme,
		host:      u.Host,
		name:      u.Scheme + "://" + u.Host,
		transport: newTransport(o, reclaim),
		health:    health{after: o.Health.UnhealthyAfter, recheck: o.Health.Every},
	}
	if strings.Trim(u.Path, "/") != "" {
		made.base = u
	}
	if u.Scheme == "http" && canLook && isASCII(u.Host) && o.Transport.Idle >= 0 { // other names are translated by the transport
		made.straight = &straight{
			dial: made.transport.DialContext, address: withPort(u.Host),
			wait: o.Limits.Upstream, keep: o.Transport.Idle, most: o.Transport.IdleConns,
		}
	}
	return made
}

func withPort(host string) string {
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

// RoundTrip has the upstream answer.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.straight.takes(r) {
		return u.straight.RoundTrip(r)
	}
	if (r.Body == nil || r.Body == http.NoBody) && !u.http2.Load() {
		onlyOnce(r)
	}
	var connected *atomic.Bool
	if u.scheme == "https" { // without TLS, a connection is there when it is dialed
		r, connected = noteSent(r)
	}
	res, err := u.transport.RoundTrip(r)
	if err != nil && connected != nil && !connected.Load() && !notConnected(err) {
		err = &connectError{err}
	}
	if err == nil && u.http2.Load() != (res.ProtoMajor == 2) {
		u.http2.Store(res.ProtoMajor == 2)
	}
	return res, err
}

func (u *upstream) closeIdle() {
	if u.straight != nil {
		u.straight.CloseIdleConnections()
	}
	u.transport.CloseIdleConnections()
}

// newTransport keeps enough connections that a burst does not end in as many new
// ones, and compresses nothing: what the client did not ask for it would not get.
func newTransport(o *Options, reclaim func()) *http.Transport {
	dialer := &net.Dialer{Timeout: o.Transport.Connect, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if isOwnFault(err) {
				reclaim()
				conn, err = dialer.DialContext(ctx, network, address)
			}
			if err != nil {
				return nil, &connectError{err}
			}
			return conn, nil
		},
		TLSClientConfig:        o.Transport.TLS.Clone(), // it is written to
		TLSHandshakeTimeout:    o.Transport.Connect,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    o.Transport.IdleConns,
		IdleConnTimeout:        max(0, o.Transport.Idle),
		DisableKeepAlives:      o.Transport.Idle < 0,
		ResponseHeaderTimeout:  o.Limits.Upstream,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: mostHead,
	}
}

// connectError: there was no connection, so nothing was sent.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// notConnected reports whether err came before a byte of the request was sent.
func notConnected(err error) bool {
	var connect *connectError
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	return errors.As(err, &connect) || errors.As(err, &certificate) || errors.As(err, &noTLS)
}

// address is where u has what was asked for.
func (u *upstream) address(target *url.URL) *url.URL {
	at := *target
	at.Scheme, at.Host = u.scheme, u.host
	if u.base != nil && at.Path != "*" {
		at.RawPath = below(u.base.EscapedPath(), at.EscapedPath()) // ignored where it is the usual one
		at.Path = below(u.base.Path, at.Path)
	}
	return &at
}

func below(base, path string) string {
	joined := "/" + strings.Trim(base, "/") + path
	if path == "" {
		joined += "/"
	}
	return joined
}
