// Package route finds the patterns that a request matches: all of them, not the
// most specific one as net/http.ServeMux does, because every rule that matches
// applies. Patterns are written as for ServeMux. The package knows nothing about
// rules; the caller gives each pattern a number.
//
// Start with [Split] for a pattern as text, and with [Tree].
package route

import (
	"errors"
	"fmt"
	"strings"
)

// Pattern is a pattern in its parts. [Split] makes it.
type Pattern struct {
	Method string // "" means every method; GET is HEAD, too
	Host   string // "" means every host; lower case, IPv6 in brackets, no port
	Path   string // as written; {name}, and at the end {name...}, {$} or a slash for all below
}

// Split takes "[METHOD ][HOST]/path" apart. It is stricter than ServeMux: what
// that would accept and no request can match is an error, and so is what reads
// like the pattern of another program. The error is a phrase about the pattern.
func Split(text string) (Pattern, error) {
	method, rest, err := cutMethod(text)
	if err != nil {
		return Pattern{}, err
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return Pattern{}, noPath(method, rest)
	}
	host, path := rest[:slash], rest[slash:]
	if strings.HasSuffix(host, ":") && strings.HasPrefix(path, "//") {
		return Pattern{}, fmt.Errorf("a scheme is never compared; leave out `%s//`", host)
	}
	if method == "" && isMethod(strings.ToUpper(host)) {
		return Pattern{}, fmt.Errorf("there is no space after the method; write `%s %s`", strings.ToUpper(host), path)
	}
	p := Pattern{Method: method, Host: host, Path: path}
	if _, err = p.check(); err != nil {
		return Pattern{}, err
	}
	p.Host = patternHost(host)
	return p, nil
}

func (p Pattern) check() (parsed, error) {
	if err := checkMethod(p.Method); err != nil {
		return parsed{}, err
	}
	if err := checkHost(p.Host); err != nil {
		return parsed{}, err
	}
	return parsePath(p.Path)
}

func cutMethod(text string) (method, rest string, err error) {
	const blank = " \t"
	switch {
	case text == "":
		return "", "", errors.New("the pattern is empty; `/` matches every path")
	case strings.Trim(text, blank) != text:
		return "", "", errors.New("there is a space before or after the pattern; leave it out")
	}
	i := strings.IndexAny(text, blank)
	if i < 0 {
		return "", text, nil
	}
	method, rest = text[:i], strings.TrimLeft(text[i:], blank)
	if strings.Contains(method, "/") {
		return "", "", errSpace
	}
	switch i := strings.IndexAny(rest, blank); {
	case i < 0:
		return method, rest, nil
	case strings.Contains(rest[:i], "/"):
		return "", "", errSpace
	default:
		return "", "", fmt.Errorf("`%s` stands between the method and the path; write one method, then host and path without a space", rest[:i])
	}
}

var errSpace = errors.New("there is a space in the path; write it as `%20`")

func checkMethod(method string) error {
	odd := func(c rune) bool { return (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' }
	upper := strings.ToUpper(method)
	switch {
	case strings.ContainsAny(method, ",|"):
		return fmt.Errorf("`%s` is more than one method; write a pattern for each of them", method)
	case strings.ContainsFunc(upper, odd):
		return fmt.Errorf("`%s` is not a method; leave it out to match every method", method)
	case upper != method:
		return fmt.Errorf("the method `%s` is not in capitals; write `%s`", method, upper)
	}
	return nil
}

func isMethod(word string) bool {
	switch word {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE":
		return true
	}
	return false
}

func noPath(method, rest string) error {
	if err := checkMethod(method); err != nil {
		return err
	}
	if method != "" {
		method += " "
	}
	switch {
	case isMethod(strings.ToUpper(rest)):
		return fmt.Errorf("there is no path after the method; `%s /` matches every path", strings.ToUpper(rest))
	case rest == "*":
		return fmt.Errorf("`*` is not a path; `%s/` matches every path", method)
	case strings.Contains(rest, "."):
		return fmt.Errorf("there is no path after the host; write `%s%s/`", method, rest)
	}
	return fmt.Errorf("the path has no leading slash; write `%s/%s`", method, rest)
}
