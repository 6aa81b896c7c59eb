// Package describe builds a request from a description written by hand: the flags of a command, a
// step of a rule test, a query to the admin API. The result is what a front end would build for the
// same request, with the described identities in place of those that a front end would find.
package describe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// Someone is a documentation address, for requests whose description has no address.
const Someone = "192.0.2.1"

// Request is a request as it was described.
type Request struct {
	Method string // "" means GET
	URL    string // a path, a host and a path, or a whole URL
	Header http.Header
	Body   string
	IP     string // address of the client, unless As has it; "" means unknown
	Cost   int64
	As     map[string]string // identities by name; ip is the client's address
}

// AddHeaders adds headers by name. Names that differ only in case are one header with two values.
func (r *Request) AddHeaders(all map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r.Header.Add(name, all[name])
	}
}

// HTTP returns the request as it would arrive at a server.
func (r *Request) HTTP() (*http.Request, error) {
	if r.URL == "" {
		return nil, errors.New("no request: write, for example, POST /posts")
	}
	h, err := http.NewRequest(cmp.Or(r.Method, http.MethodGet), whole(r.URL), strings.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.Header != nil {
		h.Header = r.Header.Clone()
	}
	if host := h.Header.Get("Host"); host != "" {
		h.Host = host
	}
	h.RemoteAddr, err = r.peer()
	return h, err
}

// whole completes a URL without scheme, or without scheme and host. A path is used as it was
// written, however odd.
func whole(at string) string {
	if _, ok := CutScheme(at); ok {
		return at
	}
	if !strings.HasPrefix(at, "/") {
		return "http://" + at
	}
	if _, err := url.Parse("http://localhost" + at); err != nil {
		return (&url.URL{Scheme: "http", Host: "localhost", Path: at}).String()
	}
	return "http://localhost" + at
}

// CutScheme returns what follows the scheme of a URL, and whether it has one. A URL within a path
// or query does not count.
func CutScheme(at string) (rest string, found bool) {
	scheme, rest, found := strings.Cut(at, "://")
	if !found || strings.ContainsAny(scheme, "/?#") {
		return at, false
	}
	return rest, true
}

// peer returns the client's address, with a port.
func (r *Request) peer() (string, error) {
	ip := cmp.Or(r.As["ip"], r.IP)
	if ip == "" {
		return "", nil
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return "", fmt.Errorf("the address %q: %w", ip, err)
	}
	return netip.AddrPortFrom(addr, 40000).String(), nil
}

// Request returns the request as a front end would build it.
func (r *Request) Request() (*tidegate.Request, error) {
	h, err := r.HTTP()
	if err != nil {
		return nil, err
	}
	made := httplimit.Options{}.Request(h)
	r.stamp(made)
	return made, nil
}

// stamp sets the described cost and identities on a request of a front end.
func (r *Request) stamp(made *tidegate.Request) {
	made.Cost = r.Cost
	made.Values = identified{made.Values, r}
}

// Matcher returns a Matcher that stamps the requests that a front end passes to m.
func (r *Request) Matcher(m tidegate.Matcher) tidegate.Matcher { return stamped{r, m} }

type stamped struct {
	request *Request
	tidegate.Matcher
}

// Match implements [tidegate.Matcher].
func (s stamped) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	s.request.stamp(r)
	return s.Matcher.Match(r, dst)
}

// identified has the described identities.
type identified struct {
	tidegate.Values
	request *Request
}

// Identity implements rules.Identified: "" means that it is known to be missing.
func (v identified) Identity(name string) (value string, known bool) {
	value, known = v.request.As[name]
	if name == "ip" { // the front end finds it from the peer, so that prefixes apply
		return "", value == "" && v.request.IP == ""
	}
	return value, known
}

// Unknown calls f for each described identity that the rules do not have: it would have no effect.
// near is a similar name that they have, or "".
func (r *Request) Unknown(names []string, f func(name, near string)) {
	for _, name := range slices.Sorted(maps.Keys(r.As)) {
		if !slices.Contains(names, name) {
			f(name, diag.Nearest(name, names))
		}
	}
}
