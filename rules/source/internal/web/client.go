// Package web sends HTTP requests to config servers. It limits the size and duration of answers and
// where redirects may lead, and reads token and certificate files again, so that they can be
// renewed.
//
// Start with [New], then [Client.Do]. The callers interpret the answers.
package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

const (
	connectTimeout = 5 * time.Second
	// answerTimeout is how long an answer may take in addition to the wait that the server was
	// asked for.
	answerTimeout = 15 * time.Second
	// bodyTimeout is how long the rest of an answer may take.
	bodyTimeout  = 30 * time.Second
	maxRedirects = 3
	maxToken     = 16 << 10
)

// Options of [New].
type Options struct {
	TokenFile string // file with the bearer token; "" for none
	CA        string // file with the authorities of the server's certificate (PEM); "" for those of the system
	Cert, Key string // files with the certificate to show and its key (PEM); "" for none
}

// Client sends requests to one server.
type Client struct {
	o    Options
	home *url.URL

	mu   sync.Mutex
	http *http.Client // uses the certificates of seen
	seen [sha256.Size]byte
}

// Request is a request to the server.
type Request struct {
	Method string // "" means GET
	URL    *url.URL
	Header http.Header
	Body   []byte
	Wait   time.Duration // how long the server is asked to wait before it answers
	Max    int64         // how many bytes the answer may have
}

// Answer is the answer of the server.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Took   time.Duration // until the headers came
}

// New returns a client for the server of home, the only one that gets the token. The error is about
// files that cannot be read.
func New(home *url.URL, o Options) (*Client, error) {
	c := &Client{o: o, home: home}
	if _, err := c.token(); err != nil {
		return nil, err
	}
	_, err := c.client()
	return c, err
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// Do sends a request. The error says what went wrong, without the URL.
func (c *Client) Do(ctx context.Context, q Request) (*Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.Wait+answerTimeout+bodyTimeout, fmt.Errorf("the answer is not complete after %s", q.Wait+answerTimeout+bodyTimeout))
	defer cancel()
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, cmp.Or(q.Method, http.MethodGet), q.URL.String(), bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	for name, values := range q.Header {
		request.Header[name] = values
	}
	request.Header.Set("User-Agent", "tidegate")
	start := time.Now()
	late := time.AfterFunc(q.Wait+answerTimeout, cancel)
	answer, err := client.Do(request)
	took := time.Since(start)
	if !late.Stop() && err != nil {
		err = fmt.Errorf("no answer within %s", q.Wait+answerTimeout)
	}
	if err != nil {
		return nil, plain(ctx, err)
	}
	defer answer.Body.Close()
	body, err := bounded.All(answer.Body, q.Max)
	var large *bounded.TooLargeError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("the answer %w", large)
	case err != nil:
		return nil, fmt.Errorf("the answer breaks off: %w", plain(ctx, err))
	}
	return &Answer{Status: answer.StatusCode, Header: answer.Header, Body: body, Took: took}, nil
}

// plain removes the URL, whose query may contain secrets, from an error, and says which time limit
// was exceeded.
func plain(ctx context.Context, err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	if cause := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) && cause != nil {
		return cause
	}
	return err
}

// client returns the HTTP client. If the certificates have changed, it is a new one with new
// connections.
func (c *Client) client() (*http.Client, error) {
	config, seen, err := c.tls()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && c.seen == seen {
		return c.http, nil
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c.seen = seen
	c.http = &http.Client{
		Transport: withToken{c, &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: config,
			TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true, IdleConnTimeout: 2 * time.Minute,
			MaxIdleConnsPerHost: 16, MaxResponseHeaderBytes: 64 << 10,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 20 * time.Second, PingTimeout: 10 * time.Second},
		}},
		CheckRedirect: c.redirect,
	}
	return c.http, nil
}

// redirect limits redirects. The token is only sent to its own host.
func (c *Client) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	case r.URL.Scheme != "https" && c.home.Scheme == "https":
		return fmt.Errorf("redirected to %s, which is not https", r.URL.Host)
	case r.URL.User != nil:
		return fmt.Errorf("redirected to an address of %s with a password in it", r.URL.Host)
	}
	return nil
}

// withToken adds the token to requests to its host, including redirected ones.
type withToken struct {
	c    *Client
	next *http.Transport
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if home := w.c.home; r.URL.Scheme == home.Scheme && r.URL.Host == home.Host {
		token, err := w.c.token()
		if err != nil {
			return nil, err
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return w.next.RoundTrip(r)
}

func (w withToken) CloseIdleConnections() { w.next.CloseIdleConnections() }

// token reads the file each time: tokens are renewed.
func (c *Client) token() (string, error) {
	if c.o.TokenFile == "" {
		return "", nil
	}
	text, err := bounded.ReadFile(c.o.TokenFile, maxToken)
	if err != nil {
		return "", fmt.Errorf("read the token for %s: %w", c.home.Host, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("read the token for %s: %s has to have one line with the token and nothing else", c.home.Host, c.o.TokenFile)
	}
	return token, nil
}

// tls reads the certificate files; seen is a hash of their content.
func (c *Client) tls() (config *tls.Config, seen [sha256.Size]byte, err error) {
	h := sha256.New()
	read := func(name string) []byte {
		if name == "" || err != nil {
			return nil
		}
		var text []byte
		if text, err = bounded.ReadFile(name, bounded.PEM); err != nil {
			err = fmt.Errorf("read the certificates for %s: %w", c.home.Host, err)
		}
		fmt.Fprintf(h, "%d ", len(text))
		_, _ = io.Writer(h).Write(text) // a hash takes everything
		return text
	}
	ca, cert, key := read(c.o.CA), read(c.o.Cert), read(c.o.Key)
	if err != nil {
		return nil, seen, err
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.o.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, seen, fmt.Errorf("read the certificates for %s: there is no certificate in PEM in %s", c.home.Host, c.o.CA)
		}
	}
	if c.o.Cert != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, seen, fmt.Errorf("read the certificate to show to %s: %w", c.home.Host, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	h.Sum(seen[:0])
	return config, seen, nil
}
