package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/bounded"
	"tidegate.dev/tidegate/internal/diag"
)

// draft is a request that is being described: by flags, by a curl line, or by
// JSON.
type draft struct {
	method, url string
	header      http.Header
	body        string
	ip          string
	cost        int64
	as          map[string]string
}

// plain is a draft as JSON.
type plain struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	IP      string            `json:"ip"`
	Cost    int64             `json:"cost"`
	As      map[string]string `json:"as"`
}

// maxRequest is how long a request as JSON may be.
const maxRequest = 1 << 20

// fromJSON reads a file, or standard input for "-".
func (d *draft) fromJSON(name string, stdin io.Reader) error {
	var src []byte
	var err error
	if name == "-" {
		src, err = bounded.All(stdin, maxRequest)
	} else {
		src, err = bounded.ReadFile(name, maxRequest)
	}
	if err != nil {
		return err
	}
	var p plain
	dec := json.NewDecoder(strings.NewReader(string(src)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return fmt.Errorf("the request in %s: %w", name, err)
	}
	d.method, d.url, d.ip, d.cost = p.Method, p.URL, p.IP, p.Cost
	for name, value := range p.Headers {
		d.header.Set(name, value)
	}
	maps.Copy(d.as, p.As)
	if len(p.Body) > 0 {
		d.body = string(p.Body)
		d.asJSON()
	}
	return nil
}

func (d *draft) asJSON() {
	if d.header.Get("Content-Type") == "" {
		d.header.Set("Content-Type", "application/json")
	}
}

func (d *draft) addHeader(line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" {
		return fmt.Errorf("the header %q has no colon: write 'X-Api-Key: abc'", line)
	}
	d.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

// addIdentity takes user=42.
func (d *draft) addIdentity(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write, for example, user=42")
	}
	d.as[name] = value
	return nil
}

// known holds what was given to the identities that the rules have: another would
// change nothing, in silence. The address is where the request comes from.
func (d *draft) known(names []string) error {
	if ip, ok := d.as["ip"]; ok {
		if _, err := netip.ParseAddr(ip); err != nil {
			return fmt.Errorf("the address %q: %w", ip, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.as)) {
		if slices.Contains(names, name) {
			continue
		}
		if near := diag.Nearest(name, names); near != "" {
			return fmt.Errorf("the rules have no identity %q; did you mean %q?", name, near)
		}
		return fmt.Errorf("the rules have no identity %q, only %s", name, strings.Join(names, ", "))
	}
	return nil
}

// request is what a front end would make of the draft, with the identities that
// were given in place of those it would find.
func (d *draft) request() (*tidegate.Request, error) {
	h, err := d.httpRequest()
	if err != nil {
		return nil, err
	}
	r := httplimit.Options{}.Request(h)
	d.stamp(r)
	return r, nil
}

func (d *draft) stamp(r *tidegate.Request) {
	r.Cost = d.cost
	r.Values = asked{r.Values, d.as}
}

// httpRequest is the request as it would come over the wire.
func (d *draft) httpRequest() (*http.Request, error) {
	if d.url == "" {
		return nil, errors.New("no request: write, for example, POST /posts")
	}
	if d.method == "" {
		d.method = http.MethodGet
	}
	at := d.url
	if !strings.Contains(at, "://") {
		if strings.HasPrefix(at, "/") {
			at = "localhost" + at
		}
		at = "http://" + at
	}
	h, err := http.NewRequest(d.method, at, strings.NewReader(d.body))
	if err != nil {
		return nil, err
	}
	h.Header = d.header.Clone()
	if host := h.Header.Get("Host"); host != "" {
		h.Host = host
	}
	h.RemoteAddr, err = peer(d.ip)
	return h, err
}

// peer is where the request comes from, one of the addresses that are kept for
// documentation unless it was said.
func peer(ip string) (string, error) {
	if ip == "" {
		ip = "192.0.2.1"
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return "", fmt.Errorf("the address %q: %w", ip, err)
	}
	return netip.AddrPortFrom(addr, 40000).String(), nil
}

// asked answers for the identities that were given on the command line.
type asked struct {
	tidegate.Values
	as map[string]string
}

// Identity implements [rules.Identified].
func (v asked) Identity(name string) (value string, known bool) {
	value, known = v.as[name]
	return value, known
}

// matcher is m for requests as they come from a front end, with what was given.
func (d *draft) matcher(m tidegate.Matcher) tidegate.Matcher { return stamped{d, m} }

type stamped struct {
	draft *draft
	tidegate.Matcher
}

// Match implements [tidegate.Matcher].
func (s stamped) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	s.draft.stamp(r)
	return s.Matcher.Match(r, dst)
}
