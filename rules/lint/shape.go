package lint

import (
	"net/url"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// shape is the set of requests that a pattern holds for. The zero shape with
// below set is every request.
type shape struct {
	method, host string // "" means any
	segments     []segment
	below        bool // the path and all below it
}

// segment is a literal, unescaped, or a wildcard.
type segment struct {
	literal string
	any     bool
}

func shapeOf(p rulefile.Pattern) shape {
	s := shape{method: p.Method, host: p.Host}
	parts := strings.Split(strings.TrimPrefix(p.Path, "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case last && (part == "" || strings.HasSuffix(part, "...}")):
			s.below = true
		case last && part == "{$}":
		case strings.HasPrefix(part, "{"):
			s.segments = append(s.segments, segment{any: true})
		default:
			if literal, err := url.PathUnescape(part); err == nil {
				part = literal
			}
			s.segments = append(s.segments, segment{literal: part})
		}
	}
	return s
}

// shapes returns the shapes of a match; an empty match is every request.
func shapes(match []rulefile.Pattern) []shape {
	if len(match) == 0 {
		return []shape{{below: true}}
	}
	var all []shape
	for _, p := range match {
		all = append(all, shapeOf(p))
	}
	return all
}

// everything reports whether s contains every request.
func (s shape) everything() bool {
	return s.method == "" && s.host == "" && len(s.segments) == 0 && s.below
}

// first returns the first segment of all paths of s, or "". Only a shape with the same first
// segment, or with none, can contain s: so not all of thousands of rules have to be compared.
func (s shape) first() string {
	if len(s.segments) == 0 {
		return ""
	}
	return s.segments[0].literal
}

// contains reports whether s holds for every request that t holds for.
func (s shape) contains(t shape) bool {
	if s.method != "" && !sameMethod(s.method, t.method) || s.host != "" && s.host != t.host {
		return false
	}
	if len(s.segments) > len(t.segments) || !s.below && (t.below || len(s.segments) < len(t.segments)) {
		return false
	}
	for i, own := range s.segments {
		if !own.any && own != t.segments[i] {
			return false
		}
	}
	return true
}

// overlaps reports whether there is a request that both hold for.
func (s shape) overlaps(t shape) bool {
	if s.method != "" && t.method != "" && !sameMethod(s.method, t.method) && !sameMethod(t.method, s.method) {
		return false
	}
	if s.host != "" && t.host != "" && s.host != t.host {
		return false
	}
	if len(s.segments) < len(t.segments) && !s.below || len(t.segments) < len(s.segments) && !t.below {
		return false
	}
	for i := range min(len(s.segments), len(t.segments)) {
		a, b := s.segments[i], t.segments[i]
		if a != b && !a.any && !b.any {
			return false
		}
	}
	return true
}

// sameMethod reports whether a pattern with method m holds for requests with method n.
func sameMethod(m, n string) bool { return m == n || m == "GET" && n == "HEAD" }

// allContain reports whether each of inner is contained in one of outer.
func (p *pass) allContain(outer, inner []shape) bool {
	for _, in := range inner {
		p.step(len(outer))
		if !slices.ContainsFunc(outer, func(out shape) bool { return out.contains(in) }) {
			return false
		}
	}
	return true
}

// anyOverlap reports whether some request is in a shape of a and in a shape of b.
func (p *pass) anyOverlap(a, b []shape) bool {
	for _, s := range a {
		p.step(len(b))
		if slices.ContainsFunc(b, s.overlaps) {
			return true
		}
	}
	return false
}
