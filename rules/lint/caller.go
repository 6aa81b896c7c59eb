package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// control is how far a caller controls a value that rules test.
type control uint8

const (
	given   control = iota // not at all: the address; what the operator's own systems say
	proved                 // it can omit it, but not choose it: a verified claim
	claimed                // it can choose it, or omit it: a header
	chosen                 // it can choose it, but not omit it: the method
)

// controlOf returns how far the caller of r controls a value from s.
func controlOf(s rulefile.Source, r *route) control {
	switch s.Kind {
	case rulefile.SourceHeader, rulefile.SourceJWT, rulefile.SourceTLSClientCN, rulefile.SourceAPIKey:
		return proved
	case rulefile.SourceClientHeader, rulefile.SourceCookie, rulefile.SourceQuery, rulefile.SourceBody,
		rulefile.SourceJWTUnverified, rulefile.SourceBasicUser, rulefile.SourceMetadata:
		return claimed
	case rulefile.SourcePathWildcard:
		return chosen
	case rulefile.SourceMethod:
		if r.method == "" {
			return chosen
		}
	case rulefile.SourceHost:
		if r.host == "" {
			return chosen
		}
	}
	// The caller chooses the path, too, but path-in-per reports that.
	return given
}

// asserts reports whether a value from s is something that the caller claims about itself. The
// path, the query and the body are what it asks for: with another value it gets something else.
func asserts(s rulefile.Source) bool {
	switch s.Kind {
	case rulefile.SourceClientHeader, rulefile.SourceCookie, rulefile.SourceJWTUnverified,
		rulefile.SourceBasicUser, rulefile.SourceMetadata:
		return true
	}
	return false
}

// shared reports whether a value from s is the same for all callers.
func shared(s rulefile.Source) bool {
	switch s.Kind {
	case rulefile.SourceEveryone, rulefile.SourceRoute, rulefile.SourceMethod, rulefile.SourceHost, rulefile.SourcePath:
		return true
	}
	return false
}

// variable names what the caller sends or omits to control a value from s; ok is false if it
// cannot. All claims are in one token, and all attributes belong to one key.
func variable(s rulefile.Source) (name string, ok bool) {
	switch {
	case s.Kind == rulefile.SourceJWT:
		return "jwt", true
	case s.Kind == rulefile.SourceAPIKey:
		return "api_key", true
	case proof(s) || writes(s):
		return strings.ToLower(s.Place()), true // as header names are compared
	}
	return "", false
}

// proof reports whether the caller can omit a value from s, but not choose it.
func proof(s rulefile.Source) bool { return controlOf(s, &route{}) == proved }

// writes reports whether the caller can choose a value from s, or omit it.
func writes(s rulefile.Source) bool { return controlOf(s, &route{}) == claimed }

// sources returns the sources of the identity of that name; the first that has a value counts.
func (p *pass) sources(name string) []rulefile.Source {
	id, _ := p.file.Identity(name)
	return id.Sources
}

// hasWildcard reports whether pattern has {name}, or {name...}.
func hasWildcard(pattern rulefile.Pattern, name string) bool {
	return strings.Contains(pattern.Path, "{"+name+"}") || strings.Contains(pattern.Path, "{"+name+"...}")
}
