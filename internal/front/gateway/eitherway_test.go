package gateway

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// eitherWay are gateways before one upstream that go there themselves, and through
// http.Transport: without idle connections, that sends everything.
func eitherWay(t testing.TB, up net.Listener, rules string) map[string]running {
	t.Helper()
	upstreams := []*url.URL{parseURL(t, "http://"+up.Addr().String())}
	return map[string]running{
		"direct":    start(t, Options{Gate: gateOf(t, rules), Upstreams: upstreams}, nil),
		"transport": start(t, Options{Gate: gateOf(t, rules), Upstreams: upstreams, Transport: Transport{Idle: -1}}, nil),
	}
}

// resetTime is how long until a limit is as good as new.
var resetTime = regexp.MustCompile(`;t=\d+`)

// brokenOff is what a client hears last of an answer that breaks off. How much it hears before
// differs.
const brokenOff = "unexpected EOF"

// heard asks g and returns all that a client hears, but for what differs from answer to
// answer.
func heard(t testing.TB, g running, request string) string {
	t.Helper()
	g.reclaim()
	conn := dial(t, g.addr)
	defer conn.Close()
	fmt.Fprint(conn, request)
	method, _, _ := strings.Cut(request, " ")
	in := bufio.NewReader(conn)
	var out strings.Builder
	for {
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			fmt.Fprintf(&out, "no answer: %v\n", err)
			return out.String()
		}
		if res.Trailer == nil && res.TransferEncoding != nil { // a stream that is over soon may have a length
			res.TransferEncoding = nil
		}
		fmt.Fprintf(&out, "%d close %t %s\n", res.StatusCode, res.Close, res.TransferEncoding)
		delete(res.Header, "Content-Length")
		delete(res.Header, "Date")
		delete(res.Header, "X-Request-Id")
		for _, name := range slices.Sorted(maps.Keys(res.Header)) {
			fmt.Fprintf(&out, "%s: %s\n", name, resetTime.ReplaceAllString(fmt.Sprintf("%q", res.Header[name]), ""))
		}
		body, err := io.ReadAll(res.Body)
		fmt.Fprintf(&out, "%q %v\n", body, err)
		if len(res.Trailer) > 0 {
			fmt.Fprintf(&out, "trailer %v\n", res.Trailer)
		}
		if res.StatusCode >= 200 {
			return out.String()
		}
	}
}
