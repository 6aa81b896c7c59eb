package route

import "strings"

// Reading is one way to divide a path into segments: "" has none, "/a/b" two. The
// shape is as long as the text and shows where they part: a slash that belongs to a
// segment is something else there.
type Reading struct{ text, shape string }

// asterisk is how "*" is read: no segment, and not the root either.
var asterisk = Reading{"*", "*"}

// Path returns the path as it is read, decoded and cleaned, without a slash at the end.
func (r *Reading) Path() string {
	if r.text == "" {
		return "/"
	}
	return r.text
}

// end returns where the segment that begins with the slash at i ends.
func (r *Reading) end(i int) int {
	if n := strings.IndexByte(r.shape[i+1:], '/'); n >= 0 {
		return i + 1 + n
	}
	return len(r.shape)
}

// Readings appends the ways in which servers may read a path, each once. path is
// decoded, rawPath as it was sent, or "" if the same. The first is the path as it
// stands, cleaned. Others are there where
//
//   - an escaped slash may or may not divide segments, and an escaped dot segment may or
//     may not be one;
//   - what follows a semicolon, escaped or not, may be cut off;
//   - a backslash, escaped or not, may be taken for a slash;
//   - an escape that was escaped may be decoded, too.
//
// It is not known here how the server reads the path, so a rule has to hold in each.
// Ordinary paths have one reading, and none of it is allocated.
func (t *Tree) Readings(path, rawPath string, readings []Reading) []Reading {
	if path == "*" {
		return append(readings, asterisk)
	}
	plain := isPlain(path)
	text := strings.TrimSuffix(path, "/")
	if !plain {
		text = clean(path)
	}
	if t.IgnoreCase {
		text = Fold(text)
	}
	readings = append(readings, Reading{text, text})
	if plain && rawPath == "" {
		return readings
	}
	odd := oddities(path, rawPath)
	if odd == (oddity{}) {
		return readings
	}
	w := reader{readings: readings, first: len(readings) - 1, fold: t.IgnoreCase}
	w.decoded(path, rawPath, odd)
	w.segmentwise(rawPath, odd)
	if odd.percent {
		if again := decodeAgain(path); again != path {
			w.plain(again)
			w.decoded(again, "", oddities(again, ""))
		}
	}
	return w.readings
}

// isPlain reports whether a decoded path is clean, except for a slash at its end, and has nothing that can be read in
// two ways.
func isPlain(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	before := byte(0)
	for i := range len(path) {
		c := path[i]
		switch c {
		case ';', '\\', '%':
			return false
		case '/', '.':
			if before == '/' {
				return false
			}
		}
		before = c
	}
	return true
}

// oddity is what may be read in two ways.
type oddity struct{ slash, dot, parameter, backslash, percent bool }

func oddities(path, raw string) (o oddity) {
	o.parameter = strings.IndexByte(path, ';') >= 0
	o.backslash = strings.IndexByte(path, '\\') >= 0
	o.percent = strings.IndexByte(path, '%') >= 0
	for {
		i := strings.IndexByte(raw, '%')
		if i < 0 || i+2 >= len(raw) {
			return o
		}
		if raw[i+1] == '2' {
			switch raw[i+2] {
			case 'F', 'f':
				o.slash = true
			case 'E', 'e':
				o.dot = true
			}
		}
		raw = raw[i+1:]
	}
}

// reader collects readings that differ from each other.
type reader struct {
	readings []Reading
	first    int // of this path's
	fold     bool
}

func (w *reader) add(r Reading) {
	if w.fold {
		r = r.folded()
	}
	for _, had := range w.readings[w.first:] {
		if had == r {
			return
		}
	}
	w.readings = append(w.readings, r)
}

// plain adds a path that is decoded.
func (w *reader) plain(p string) {
	p = clean(p)
	w.add(Reading{p, p})
}

// decoded adds the readings of servers that decode the whole path and divide it then.
// They differ in what is done first: cutting, decoding, or turning backslashes over.
func (w *reader) decoded(path, raw string, odd oddity) {
	turned := turnBackslashes(path)
	if odd.backslash {
		w.plain(turned)
	}
	if !odd.parameter {
		return
	}
	early := []string{withoutParameters(path)} // decoded first
	if raw != "" {
		if cut, ok := unescaped(withoutParameters(raw)); ok {
			early = append(early, cut)
		}
	}
	for _, cut := range early {
		w.plain(cut)
		if odd.backslash {
			w.plain(turnBackslashes(cut))
		}
	}
	if odd.backslash {
		w.plain(withoutParameters(turned))
	}
}

// segmentwise adds the readings of servers that first divide and clean the path as it
// was sent, and then decode each segment by itself.
func (w *reader) segmentwise(raw string, odd oddity) {
	if !odd.slash && !odd.dot {
		return
	}
	variants := []string{raw}
	if odd.slash && odd.dot {
		variants = append(variants, replaceEscape(raw, '.', '.'))
	}
	if odd.backslash {
		for _, way := range variants {
			variants = append(variants, turnBackslashes(way))
		}
	}
	for _, way := range variants {
		w.segments(way)
		if odd.parameter {
			w.segments(withoutParameters(way))
			w.segments(withoutParameters(replaceEscape(way, ';', ';')))
		}
	}
}

// segments adds nothing where an escape is not valid: then the path alone counts.
func (w *reader) segments(raw string) {
	raw = clean(raw)
	var b strings.Builder
	b.Grow(2 * len(raw))
	if !unescape(&b, raw, '/') {
		return
	}
	n := b.Len()
	unescape(&b, raw, 0)
	w.add(Reading{b.String()[:n], b.String()[n:]})
}

func unescaped(raw string) (string, bool) {
	var b strings.Builder
	b.Grow(len(raw))
	ok := unescape(&b, raw, '/')
	return b.String(), ok
}
