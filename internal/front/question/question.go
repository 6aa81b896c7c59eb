// Package question has the request that a caller describes when it asks about one: a method, a
// target, an address, headers, identities by name. Front ends that are asked in some
// protocol fill in a Question and get the request that a gate decides.
//
// The caller is believed: an identity in As takes precedence over one found in the request,
// and headers count as those of a trusted proxy. The target is the client's own word, so it
// passes the same inspection as at the gateway.
//
// Start with [Question.Request].
package question

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/strict"
)

// Bounds of a question. Front ends that read one enforce them.
const (
	MaxTarget  = 8 << 10
	MaxHeaders = 128
	MaxAs      = 64
	MaxBody    = 64 << 10
)

// Question is a request as it was described. It can be reused after Reset.
type Question struct {
	Method  string // "" means GET
	Host    string // "" means that nobody said
	Target  string // path and query exactly as the client sent them; "" means /
	IP      string // the client's address; "" means that it is not known
	Headers []Pair
	Body    string // JSON, unless a header Content-Type says otherwise
	Cost    int64  // 0 means 1
	As      []Pair // identities by the names of the rules; ip takes precedence over IP
	Report  bool   // the caller will report how the request ended

	request tidegate.Request
	url     url.URL
	http    http.Request // what strict inspects, and values are read from
	ip      string       // ip of As, else IP
	addr    netip.Addr
	values  tidegate.Values // nil until somebody asks for more than the address
}

// Pair is a name and a value.
type Pair struct{ Name, Value string }

// Reset empties q. Requests made of it are no longer valid.
func (q *Question) Reset() {
	q.request.Reset()
	clear(q.Headers)
	clear(q.As)
	q.Headers, q.As = q.Headers[:0], q.As[:0]
	q.Method, q.Host, q.Target, q.IP, q.Body, q.Cost = "", "", "", "", "", 0
	q.Report = false
	q.ip, q.addr = "", netip.Addr{}
	q.url = url.URL{}
	if q.values != nil {
		q.values, q.http = nil, http.Request{}
	} else { // the rest of http is still empty
		q.http.Method, q.http.Host, q.http.RequestURI, q.http.URL = "", "", "", nil
	}
}

// Request returns the request for a gate. The problem says why the gateway would not pass such a
// request on, whatever the rules say; the error is a mistake in the description. The request
// refers to q.
func (q *Question) Request(paths strict.Paths) (*tidegate.Request, *strict.Problem, error) {
	if err := q.findAddress(); err != nil {
		return nil, nil, err
	}
	target := cmp.Or(q.Target, "/")
	host, p := q.host()
	if p != nil {
		return nil, p, nil
	}
	q.http.Method, q.http.Host, q.http.RequestURI = cmp.Or(q.Method, http.MethodGet), host, target
	q.http.URL, q.http.ProtoMajor = &q.url, 1
	if p := q.inspect(target, paths); p != nil {
		return nil, p, nil
	}
	r := &q.request
	r.Reset()
	u := q.http.URL
	r.Method, r.Host, r.Path, r.Values, r.Cost = q.http.Method, q.http.Host, u.Path, q, q.Cost
	if u.RawPath != "" {
		r.RawPath = u.EscapedPath()
	}
	return r, nil, nil
}

// Refused describes q for a log, after Request has returned a problem.
func (q *Question) Refused(reason string) strict.Refused {
	path, _, _ := strings.Cut(cmp.Or(q.Target, "/"), "?") // a query may have secrets
	return strict.Refused{Client: q.addr, Method: cmp.Or(q.Method, http.MethodGet), Host: q.Host, Path: path[:min(len(path), MaxTarget)], Reason: reason}
}

func (q *Question) inspect(target string, paths strict.Paths) *strict.Problem {
	if p := strict.Method(q.http.Method); p != nil {
		return p
	}
	if len(target) > MaxTarget {
		return &strict.Problem{Status: http.StatusRequestURITooLong, Detail: fmt.Sprintf("The request target is longer than %d bytes.", MaxTarget)}
	}
	if target[0] != '/' && target != "*" { // what is passed on is a path
		return &strict.Problem{Status: http.StatusBadRequest, Detail: "The request target is not a path."}
	}
	if p := strict.Parse(target, &q.url); p != nil {
		return p
	}
	unsaid := q.http.Host == ""
	if unsaid {
		q.http.Host = "localhost" // a host is not needed here
	}
	if p := strict.Target(&q.http); p != nil {
		return p
	}
	if unsaid {
		q.http.Host = ""
	}
	return paths.Inspect(&q.http)
}

var otherHost = &strict.Problem{Status: http.StatusBadRequest, Detail: "The request names two hosts."}

// host returns Host, or else the header of that name; a problem if they differ.
func (q *Question) host() (string, *strict.Problem) {
	host := q.Host
	for i := range q.Headers {
		if h := &q.Headers[i]; len(h.Name) == len("Host") && strings.EqualFold(h.Name, "Host") {
			if host != "" && !strings.EqualFold(host, h.Value) {
				return "", otherHost
			}
			host = h.Value
		}
	}
	return host, nil
}

func (q *Question) findAddress() error {
	q.ip, q.addr = q.IP, netip.Addr{}
	if named, ok := q.as("ip"); ok {
		q.ip = named
	}
	if q.ip == "" {
		return nil
	}
	addr, err := netip.ParseAddr(q.ip)
	if err != nil || addr.Zone() != "" {
		return errors.New("the ip is not an address: write, for example, 203.0.113.9 or 2001:db8::1")
	}
	q.addr = addr.Unmap()
	return nil
}

func (q *Question) as(name string) (string, bool) {
	for i := range q.As {
		if q.As[i].Name == name {
			return q.As[i].Value, true
		}
	}
	return "", false
}
