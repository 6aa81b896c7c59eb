package route

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
)

// request is what Match is asked.
type request struct{ method, host, path, raw string }

// oracle says the same as the tree in the plainest way: every pattern by itself,
// segment by segment, in each reading. It returns the value of each wildcard, and
// whether there is a reading that does not match.
func oracle(p Pattern, r request) (values map[string]string, partial, ok bool) {
	method := p.Method == "" || p.Method == r.method || p.Method == "GET" && r.method == "HEAD"
	if !method || p.Host != "" && !sameHost(p.Host, r.host) {
		return nil, false, false
	}
	if r.path == "*" {
		name, all := strings.CutSuffix(p.Path, "...}")
		name, named := strings.CutPrefix(name, "/{")
		if all && named && !strings.Contains(name, "/") {
			return map[string]string{name: ""}, false, true
		}
		return nil, false, p.Path == "/"
	}
	for _, ways := range readings(r) {
		fit := false
		for _, segments := range ways {
			if v, fine := fits(p.Path, segments); fine {
				if !ok {
					values, ok = v, true
				}
				fit = true
				break
			}
		}
		partial = partial || !fit
	}
	return values, partial, ok
}

// readings have more than one way where an escaped slash at the end may be none.
func readings(r request) [][][]string {
	divide := func(p string) []string {
		return strings.FieldsFunc(path.Clean("/"+p), func(c rune) bool { return c == '/' })
	}
	all := [][][]string{{divide(r.path)}}
	raw := strings.ReplaceAll(strings.ReplaceAll(r.raw, "%2E", "%2e"), "%2F", "%2f")
	var ways []string
	slash, dot := strings.Contains(raw, "%2f"), strings.Contains(raw, "%2e")
	if slash || dot {
		ways = append(ways, raw)
	}
	if slash && dot {
		ways = append(ways, strings.ReplaceAll(raw, "%2e", "."))
	}
	for _, raw := range ways {
		segments, valid := divide(raw), true
		for i, s := range segments {
			decoded, err := url.PathUnescape(s)
			segments[i], valid = decoded, valid && err == nil
		}
		if !valid {
			continue
		}
		both := [][]string{segments}
		if n := len(segments) - 1; n >= 0 && segments[n] == "/" {
			both = append(both, segments[:n])
		}
		all = append(all, both)
	}
	return all
}

func fits(pattern string, segments []string) (map[string]string, bool) {
	values := make(map[string]string)
	parts := strings.Split(pattern, "/")[1:]
	for i, part := range parts {
		if part == "" {
			return values, true
		}
		if part == "{$}" {
			return values, len(segments) == i
		}
		name, wild := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		if name, rest := strings.CutSuffix(name, "..."); wild && rest {
			values[name] = strings.Join(segments[i:], "/")
			return values, true
		}
		if i == len(segments) {
			return nil, false
		}
		literal, _ := url.PathUnescape(part)
		if wild {
			values[name] = segments[i]
		} else if literal != segments[i] {
			return nil, false
		}
	}
	return values, len(segments) == len(parts)
}

func sameHost(pattern, host string) bool {
	if v6, ok := strings.CutPrefix(pattern, "["); ok {
		_, host, _ = strings.Cut("["+strings.TrimPrefix(host, "["), "[")
		host, _, _ = strings.Cut(host, "]")
		host, _, _ = strings.Cut(host, "%")
		a, err := netip.ParseAddr(host)
		return err == nil && a == netip.MustParseAddr(strings.TrimSuffix(v6, "]"))
	}
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if strings.Count(host, ":") == 1 {
		host = host[:strings.Index(host, ":")]
	}
	return strings.TrimRight(lowerASCII(host), ".") == pattern
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// compare matches a request against all patterns in one tree and one by one.
func compare(t *testing.T, patterns []Pattern, r request) {
	t.Helper()
	tr := New()
	want, partly := make(map[int]map[string]string), make(map[int]bool)
	for i, p := range patterns {
		tr.Add(p, i)
		if values, partial, ok := oracle(p, r); ok {
			want[i], partly[i] = values, partial
		}
	}
	got := make(map[int]bool)
	for _, h := range tr.Match(r.method, r.host, r.path, r.raw, nil) {
		if got[h.ID] {
			t.Errorf("%+v hits %+v twice", r, patterns[h.ID])
		}
		got[h.ID] = true
		values, ok := want[h.ID]
		if !ok {
			t.Errorf("%+v hits %+v", r, patterns[h.ID])
		}
		if h.Partial != partly[h.ID] {
			t.Errorf("%+v hits %+v: partial %v, want %v", r, patterns[h.ID], h.Partial, partly[h.ID])
		}
		for name, value := range values {
			if v, ok := h.Value(name); v != value || !ok {
				t.Errorf("%+v and %+v: {%s} is %q, %v, want %q", r, patterns[h.ID], name, v, ok, value)
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(want)) {
		if !got[i] {
			t.Errorf("%+v does not hit %+v", r, patterns[i])
		}
	}
}

// pick draws one of the words.
func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

func randomPattern(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(r, "", "", "", "GET ", "HEAD ", "POST "))
	b.WriteString(pick(r, "", "", "", "a.com", "b.com", "[::1]"))
	for i := range r.IntN(5) {
		b.WriteString(pick(r, "/a", "/a", "/b", "/c%2Fd", "/.a", "/%25", "/d", "/longer", fmt.Sprintf("/{w%d}", i), fmt.Sprintf("/{v%d}", i)))
	}
	b.WriteString(pick(r, "", "/", "/{$}", "/{rest...}"))
	if s := b.String(); strings.Contains(s, "/") {
		return s
	}
	return "/"
}

func randomRequest(r *rand.Rand) request {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(pick(r, "/a", "/a", "/a", "/b", "/b", "/c", "/d", "/longer", "/c%2Fd", "%2fb", "/a%2F", "/%2F", "/..", "/.", "/", "/%2e", "/%2E%2e", "/.a", "/%61", "/%25", "/%252F"))
	}
	b.WriteString(pick(r, "", "", "/"))
	q := request{
		method: pick(r, "GET", "GET", "HEAD", "POST", "PUT"),
		host:   pick(r, "", "a.com", "A.com:80", "b.com.", "c.com", "[::1]:80", "[0::1]"),
		raw:    b.String(),
	}
	q.path, _ = url.PathUnescape(q.raw)
	return q
}

func TestMatchAgreesWithOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var patterns []Pattern
		for range 1 + r.IntN(40) {
			p, err := Split(randomPattern(r))
			if err != nil {
				t.Fatal(err)
			}
			patterns = append(patterns, p)
		}
		for range 10 {
			compare(t, patterns, randomRequest(r))
		}
		if t.Failed() {
			return
		}
	}
}

// FuzzMatch takes patterns line by line; those that are none are left out.
func FuzzMatch(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var lines []string
		for range r.IntN(12) {
			lines = append(lines, randomPattern(r))
		}
		q := randomRequest(r)
		f.Add(strings.Join(lines, "\n"), q.method, q.host, q.path, q.raw)
	}
	f.Add("/\n/{all...}\n/{$}\nOPTIONS /", "OPTIONS", "", "*", "*")
	f.Add("/a/b\n/a/{x}", "GET", "", "/a/b", "/a%2Fb%zz")
	f.Fuzz(func(t *testing.T, lines, method, host, path, raw string) {
		var patterns []Pattern
		for line := range strings.Lines(lines) {
			if p, err := Split(strings.TrimSuffix(line, "\n")); err == nil {
				patterns = append(patterns, p)
			}
		}
		compare(t, patterns, request{method, host, path, raw})
		if decoded, err := url.PathUnescape(raw); err == nil {
			compare(t, patterns, request{method, host, decoded, raw})
		}
	})
}
