package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/front/strict"
)

// inspect returns what is wrong with a request, before any rule is evaluated: it must mean
// the same to the rules, to the upstream and to proxies in front. net/http has refused
// some requests before.
func (g *Gateway) inspect(r *http.Request) *problem {
	if p := strict.Method(r.Method); p != nil {
		return refused(p)
	}
	if len(r.RequestURI) > g.o.Limits.URI {
		return listen.NewProblem(http.StatusRequestURITooLong, fmt.Sprintf("The request target is longer than %d bytes.", g.o.Limits.URI))
	}
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	if lines > g.o.Limits.HeaderLines {
		return listen.NewProblem(http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("The request has more than %d header lines.", g.o.Limits.HeaderLines))
	}
	if p := strict.Target(r); p != nil {
		return refused(p)
	}
	for _, host := range r.Header["Host"] { // over HTTP/2, beside :authority
		if !strings.EqualFold(host, r.Host) {
			return badRequest("The request names two hosts.")
		}
	}
	if limit := g.o.Limits.Body; limit > 0 && r.ContentLength > limit {
		return tooLarge(limit)
	}
	return refused(g.o.Paths.Inspect(r))
}

// refused returns the answer to a request in which strict found p; nil if p is nil.
func refused(p *strict.Problem) *problem {
	if p == nil {
		return nil
	}
	answer := listen.NewProblem(p.Status, p.Detail)
	answer.Allow = p.Allow
	return answer
}

// onlyWebSocket removes every other offer to switch protocols: a client could talk h2c to an
// upstream that accepts it, bypassing all rules.
func onlyWebSocket(r *http.Request) {
	offers := r.Header["Upgrade"]
	if len(offers) == 1 && len(offers[0]) == len("websocket") && strings.EqualFold(offers[0], "websocket") && r.Method == http.MethodGet && r.ContentLength == 0 && r.Proto == "HTTP/1.1" {
		return
	}
	if len(offers) > 0 {
		delete(r.Header, "Upgrade")
	}
	delete(r.Header, "Http2-Settings")
}
