package route

import "strings"

// Hit is a pattern that a request matches.
type Hit struct {
	ID int // as it was added
	// Partial: the pattern matches in one reading of the path and not in another,
	// so whoever serves it may not take it for what the pattern is about.
	Partial bool
	pattern *entry
	reading reading
	in      uint8 // the readings that match, by bit
}

// Match appends to hits the patterns that a request matches, each once, in no
// particular order. path is decoded, rawPath as it was sent, or "" if the same.
//
// The path is cleaned first, and a slash at its end is ignored; "*" matches only
// what holds for every path. An escaped slash may or may not divide segments and
// an escaped dot segment may or may not be one, depending on who serves the path
// in the end, so a pattern needs to match just one of the readings: no spelling
// escapes it. What is to be let off needs all of them: see Hit. Case, port and
// trailing dot of the host do not matter.
//
// The time it takes depends on the path and on the patterns that begin like it,
// not on the others. It allocates for none but odd spellings: unclean paths, and
// escaped slashes and dots.
func (t *Tree) Match(method, host, path, rawPath string, hits []Hit) []Hit {
	w := walk{method: method, hits: hits, before: len(hits)}
	roots := [2]*node{&t.anyHost, nil}
	if len(t.hosts) > 0 {
		var room [maxHost]byte
		roots[1] = t.hosts[string(hostKey(room[:0], host))]
	}
	if path == "*" {
		for _, n := range roots {
			if n != nil {
				w.take(n.below)
			}
		}
		return w.hits
	}
	w.read(roots, plain(path))
	slash, dot := escaped(rawPath)
	if slash || dot {
		w.readRaw(roots, rawPath)
	}
	if slash && dot {
		w.readRaw(roots, dots.Replace(rawPath))
	}
	for i := range w.hits[w.before:] {
		h := &w.hits[w.before+i]
		h.Partial = w.readings > 1 && h.in != 1<<w.readings-1
	}
	return w.hits
}

// walk is one Match on its way through the tree.
type walk struct {
	method string
	hits   []Hit
	before int // hits that were there before
	reading
	readings uint8 // so far, this one included: another may find what the first has found
}

func (w *walk) readRaw(roots [2]*node, raw string) {
	if r, ok := segmentwise(raw); ok {
		w.read(roots, r)
	}
}

func (w *walk) read(roots [2]*node, r reading) {
	w.reading = r
	w.readings++
	for _, n := range roots {
		if n != nil {
			w.from(n, 0)
		}
	}
}

// from takes what matches the path from the slash at i on. It recurses only
// where patterns have both a literal and a wildcard, so not deeper than they are.
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
	if l == nil || w.readings > 1 && w.had(l) {
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
		w.hits = append(w.hits, Hit{ID: entries[i].id, pattern: &entries[i], reading: w.reading, in: w.bit()})
	}
}

// had reports whether an earlier reading has found the patterns of l, which this
// one has found as well.
func (w *walk) had(l *leaf) bool {
	found := false
	for i := range w.hits[w.before:] {
		if h := &w.hits[w.before+i]; h.pattern.leaf == l {
			h.in |= w.bit()
			found = true
		}
	}
	return found
}

// bit is that of the reading; "*" is read without one.
func (w *walk) bit() uint8 { return 1 << max(w.readings, 1) >> 1 }

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
	return strings.TrimPrefix(h.reading.text[i:], "/"), true
}
