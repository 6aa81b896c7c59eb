package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/front/gateway"
)

// forwarded returns what gateways of every strictness make of the targets: what an
// upstream gets may be written differently from what the client sent.
func forwarded(targets []string) ([]string, error) {
	var mu sync.Mutex
	var got []string
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.RequestURI)
	}))
	defer upstream.Close()
	u, err := url.Parse(upstream.URL)
	if err != nil {
		return nil, err
	}
	for choice := range 8 {
		p := gateway.Paths{EncodedSlash: choice&1 != 0, CleanDots: choice&2 != 0, MergeSlashes: choice&4 != 0}
		if err := pass(u, p, targets); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// stripped returns what other proxies make of the targets: the path of a whole URL, no
// space at the end, and what Go writes for letters that should be escaped.
func stripped(targets []string) []string {
	var got []string
	for _, target := range targets {
		target = strings.TrimRight(target, " ")
		if scheme, rest, whole := strings.Cut(target, "://"); whole && !strings.ContainsAny(scheme, "/?#") {
			slash := strings.IndexByte(rest, '/')
			if slash < 0 {
				continue
			}
			target = rest[slash:]
		}
		got = append(got, target)
	}
	for _, target := range targets {
		if u, err := url.ParseRequestURI(target); err == nil {
			got = append(got, u.RequestURI(), normalized(u))
		}
	}
	return got
}

// normalized returns a target by RFC 3986, 6.2.2, as Traefik writes it: letters are not escaped,
// escapes are in upper case, dots are resolved and slashes merged.
func normalized(u *url.URL) string {
	escaped := regexp.MustCompile("%..").ReplaceAllStringFunc(u.EscapedPath(), func(escape string) string {
		letter, err := url.PathUnescape(escape)
		if err == nil && url.PathEscape(letter) == letter && !strings.ContainsAny(letter, "$&+,;=:@") {
			return letter
		}
		return strings.ToUpper(escape)
	})
	clean := *u
	clean.RawPath = escaped
	clean.Path, _ = url.PathUnescape(escaped) // so that it is valid
	return clean.JoinPath().RequestURI()
}

// pass sends every target through one gateway.
func pass(upstream *url.URL, p gateway.Paths, targets []string) error {
	g, err := gateway.New(gateway.Options{Upstreams: []*url.URL{upstream}, Paths: p})
	if err != nil {
		return err
	}
	defer g.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = g.Serve(l, nil) }() // ends with Close
	for _, target := range targets {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", target)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return fmt.Errorf("send %q through a gateway: %w", target, err)
		}
		res.Body.Close()
		conn.Close()
	}
	return nil
}
