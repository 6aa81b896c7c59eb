package route

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// maxSegments bounds the depth of a tree, and so how deep a match recurses.
const maxSegments = 128

// parsed is the path of a pattern, read.
type parsed struct {
	segments []segment
	below    bool   // the path and all below it; else the path alone
	rest     string // the name of {name...}, or ""
}

// segment is a wildcard if it has a name.
type segment struct {
	literal string // unescaped
	name    string
}

func parsePath(path string) (parsed, error) {
	var p parsed
	if !strings.HasPrefix(path, "/") {
		return p, errors.New("the path has no leading slash")
	}
	if err := checkCharacters(path); err != nil {
		return p, err
	}
	parts := strings.Split(path[1:], "/")
	if len(parts) > maxSegments {
		return p, fmt.Errorf("the path has %d segments; %d are the most", len(parts), maxSegments)
	}
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "" && last:
			p.below = true
		case part == "":
			return p, errors.New("`//` never matches, because paths are cleaned first; write one slash")
		case strings.ContainsAny(part, "{}"):
			if err := p.wildcard(part, last); err != nil {
				return p, err
			}
		default:
			literal, err := unescapeLiteral(part)
			if err != nil {
				return p, err
			}
			p.segments = append(p.segments, segment{literal: literal})
		}
	}
	return p, nil
}

func (p *parsed) wildcard(part string, last bool) error {
	name, opened := strings.CutPrefix(part, "{")
	name, closed := strings.CutSuffix(name, "}")
	if !opened || !closed || strings.ContainsAny(name, "{}") {
		return fmt.Errorf("`%s` is malformed: a wildcard is a whole segment, `{name}`", part)
	}
	if name == "$" {
		if !last {
			return errors.New("`{$}` ends the path and must be last")
		}
		return nil
	}
	name, rest := strings.CutSuffix(name, "...")
	switch {
	case name == "":
		return fmt.Errorf("the wildcard `%s` has no name", part)
	case !isName(name):
		return fmt.Errorf("`%s` is not the name of a wildcard; use letters, digits and _ alone", name)
	case slices.ContainsFunc(p.segments, func(s segment) bool { return s.name == name }):
		return fmt.Errorf("two wildcards are named `%s`; give each its own name", name)
	case rest && !last:
		return fmt.Errorf("`%s` takes the rest of the path and must be last", part)
	case rest:
		p.below, p.rest = true, name
	default:
		p.segments = append(p.segments, segment{name: name})
	}
	return nil
}

func isName(s string) bool {
	for i, c := range s {
		if !unicode.IsLetter(c) && c != '_' && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return true
}

func checkCharacters(path string) error {
	switch {
	case strings.Contains(path, "?"):
		return errors.New("the query is not part of a pattern; leave out `?` and what follows")
	case strings.Contains(path, "#"):
		return errors.New("a fragment is never sent; leave out `#` and what follows")
	case strings.Contains(path, "*"):
		return errors.New("`*` is not a wildcard; write `{name}` for one segment, or a slash at the end for all below")
	case strings.ContainsFunc(path, unicode.IsControl):
		return errors.New("there is a control character in the path; leave it out")
	case strings.ContainsFunc(path, unicode.IsSpace):
		return errSpace
	}
	return nil
}

func unescapeLiteral(part string) (string, error) {
	if name, ok := strings.CutPrefix(part, ":"); ok && isName(name) && name != "" {
		return "", fmt.Errorf("`%s` is not a wildcard; write `{%s}`", part, name)
	}
	literal, err := url.PathUnescape(part)
	if err != nil {
		return "", fmt.Errorf("the `%%` in `%s` begins no escape; a percent sign is written `%%25`", part)
	}
	if literal == "." || literal == ".." {
		return "", fmt.Errorf("the segment `%s` never matches, because paths are cleaned first; write the path it leads to", part)
	}
	return literal, nil
}
