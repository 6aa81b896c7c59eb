package route

import "strings"

// Hit is a pattern that a request matches.
type Hit struct {
	ID      int // that the pattern was added with
	pattern *entry
	reading Reading
}

// Match appends to hits the patterns that a request matches in one of the readings of
// its path, in no particular order. The path "*" of OPTIONS matches only patterns for all
// paths. Case, port and trailing dot of the host do not matter.
//
// The time it takes depends on the path and on the patterns that begin like it, not on
// the others. It does not allocate.
func (t *Tree) Match(method, host string, path Reading, hits []Hit) []Hit {
	w := walk{method: method, hits: hits, Reading: path}
	roots := [2]*node{&t.anyHost, nil}
	if len(t.hosts) > 0 {
		var room [maxHost]byte
		roots[1] = t.hosts[string(hostKey(room[:0], host))]
	}
	for _, n := range roots {
		switch {
		case n == nil:
		case path == asterisk:
			w.take(n.below)
		default:
			w.from(n, 0)
		}
	}
	return w.hits
}

// walk is the state of one Match.
type walk struct {
	method string
	hits   []Hit
	Reading
}

// from takes the patterns below n that match the rest of the path, which begins with the slash at
// i. It recurses only where patterns have both a literal and a wildcard, so not deeper than they are.
func (w *walk) from(n *node, i int) {
	for n != nil {
		w.take(n.below)
		if i == len(w.text) {
			w.take(n.here)
			return
		}
		end := w.end(i)
		segment := w.text[i+1 : end]
		if segment == "/" && end == len(w.text) {
			w.take(n.here) // ServeMux takes an escaped slash alone for the slash at the end
		}
		literal := n.literals.get(segment)
		switch {
		case literal == nil:
			n = n.wildcard
		case n.wildcard == nil:
			n = literal
		default:
			w.from(n.wildcard, end)
			n = literal
		}
		i = end
	}
}

// take adds the patterns of a leaf that are for the method.
func (w *walk) take(l *leaf) {
	if l == nil {
		return
	}
	w.add(l.all)
	w.add(l.methods.get(w.method))
	if w.method == "HEAD" {
		w.add(l.methods.get("GET"))
	}
}

func (w *walk) add(entries []entry) {
	for i := range entries {
		w.hits = append(w.hits, Hit{ID: entries[i].id, pattern: &entries[i], reading: w.Reading})
	}
}

// Value returns what the wildcard of the name stands for, decoded; false means
// that the pattern has none of that name. It is a part of the path that was
// matched and lives as long.
func (h *Hit) Value(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	i := 0
	for _, n := range h.pattern.names {
		end := h.reading.end(i)
		if n == name {
			return h.reading.text[i+1 : end], true
		}
		i = end
	}
	if h.pattern.rest != name {
		return "", false
	}
	if h.reading == asterisk {
		return "", true
	}
	return strings.TrimPrefix(h.reading.text[i:], "/"), true
}
