package route

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// request is what Match is asked.
type request struct{ method, host, path, raw string }

// oracle says the same as the tree in the plainest way: every pattern by itself,
// segment by segment. It returns the value of each wildcard.
func oracle(p Pattern, r request, variants [][]string) (values map[string]string, ok bool) {
	method := p.Method == "" || p.Method == r.method || p.Method == "GET" && r.method == "HEAD"
	if !method || p.Host != "" && !sameHost(p.Host, r.host) {
		return nil, false
	}
	if r.path == "*" {
		name, all := strings.CutSuffix(p.Path, "...}")
		name, named := strings.CutPrefix(name, "/{")
		if all && named && !strings.Contains(name, "/") {
			return map[string]string{name: ""}, true
		}
		return nil, p.Path == "/"
	}
	for _, segments := range variants {
		if v, fine := fits(p.Path, segments); fine {
			return v, true
		}
	}
	return nil, false
}

var parameter = regexp.MustCompile(`;[^/]*`)

// cuts are a path with and without its parameters.
func cuts(p string) []string { return []string{p, parameter.ReplaceAllString(p, "")} }

// turned are a path with its backslashes and with slashes in their place.
func turned(p string) []string {
	return []string{p, regexp.MustCompile(`(?i)\\|%5c`).ReplaceAllString(p, "/")}
}

// readings are all ways to read a path, and some more than once. One has two ways to
// divide it where an escaped slash at the end may be none.
func readings(r request) [][][]string {
	divide := func(p string) []string {
		return strings.FieldsFunc(path.Clean("/"+p), func(c rune) bool { return c == '/' })
	}
	var all [][][]string
	plain := func(p string) { all = append(all, [][]string{divide(p)}) }
	twice := regexp.MustCompile(`%[0-9a-fA-F]{2}`).ReplaceAllStringFunc(r.path, func(s string) string {
		b, _ := hex.DecodeString(s[1:])
		return string(b)
	})
	for _, path := range []string{r.path, twice} {
		plain(path)
		backslash := strings.Contains(path, `\`)
		for _, p := range cuts(path) {
			plain(p)
			if backslash {
				plain(turned(p)[1])
			}
		}
		if backslash {
			plain(cuts(turned(path)[1])[1])
		}
	}
	backslash := strings.Contains(r.path, `\`)
	if cut, err := url.PathUnescape(cuts(r.raw)[1]); err == nil && r.raw != "" && strings.Contains(r.path, ";") {
		plain(cut)
		if backslash {
			plain(turned(cut)[1])
		}
	}
	raw := regexp.MustCompile(`%2[EF]`).ReplaceAllStringFunc(r.raw, strings.ToLower)
	slash, dot := strings.Contains(raw, "%2f"), strings.Contains(raw, "%2e")
	if !slash && !dot {
		return all
	}
	forms := []string{raw}
	if slash && dot {
		forms = append(forms, strings.ReplaceAll(raw, "%2e", "."))
	}
	if backslash {
		for _, f := range forms {
			forms = append(forms, turned(f)[1])
		}
	}
	for _, f := range forms {
		variants := []string{f}
		if strings.Contains(r.path, ";") {
			variants = append(variants, cuts(f)[1], cuts(regexp.MustCompile(`(?i)%3b`).ReplaceAllString(f, ";"))[1])
		}
		for _, w := range variants {
			if both, ok := segmentwise(divide(w)); ok {
				all = append(all, both)
			}
		}
	}
	return all
}

func segmentwise(segments []string) ([][]string, bool) {
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		segments[i] = decoded
	}
	both := [][]string{segments}
	if n := len(segments) - 1; n >= 0 && segments[n] == "/" {
		both = append(both, segments[:n])
	}
	return both, true
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

// compare matches a request against all patterns in one tree and one by one: what
// each reading hits, and with which values.
func compare(t *testing.T, patterns []Pattern, r request) {
	t.Helper()
	tr := New()
	for i, p := range patterns {
		tr.Add(p, i)
	}
	want, got := map[string]bool{}, map[string]bool{}
	for _, variants := range readings(r) {
		var hits []string
		for i, p := range patterns {
			if values, ok := oracle(p, r, variants); ok {
				hits = append(hits, fmt.Sprintf("%d%q", i, values))
			}
		}
		want[fmt.Sprint(hits)] = true
	}
	for _, way := range tr.Readings(r.path, r.raw, nil) {
		found := tr.Match(r.method, r.host, way, nil)
		slices.SortFunc(found, func(a, b Hit) int { return a.ID - b.ID })
		var hits []string
		for _, h := range found {
			values := map[string]string{}
			for _, name := range append(slices.Clone(h.pattern.names), h.pattern.rest) {
				if v, ok := h.Value(name); ok {
					values[name] = v
				}
			}
			hits = append(hits, fmt.Sprintf("%d%q", h.ID, values))
		}
		got[fmt.Sprint(hits)] = true
	}
	if !maps.Equal(want, got) {
		t.Errorf("%+v among %+v:\n got %v\nwant %v", r, patterns, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
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
		b.WriteString(pick(r, "/a", "/a", "/a", "/b", "/b", "/c", "/d", "/longer", "/c%2Fd", "%2fb", "/a%2F", "/%2F", "/..", "/.", "/", "/%2e", "/%2E%2e", "/.a", "/%61", "/%25", "/%252F", ";x", "/b;x", "/;", "/..;", "%3b", "/a%3Bx", ";%2f", "%5cb", "%5C", "/..%5c", "%2561", "/%253b", "%255c", "/%252e%252e"))
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
	testdep.SkipUnderRace(t)
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
