package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// control is what a caller can do about a value that rules look at.
type control uint8

const (
	given   control = iota // nothing: the address; what the operator's own systems say
	proved                 // leave it out, but not choose it: a verified claim
	claimed                // choose it, or leave it out: a header
	chosen                 // choose it, but not leave it out: the method
)

// controlOf is what the caller of r can do about a value from s.
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
	// The path is the caller's choice as well, and path-in-per says so.
	return given
}

// asserts reports whether a value from s is something that the caller says about
// itself. The path, the query and the body are what it asks for: who writes
// something else there gets something else.
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

// variable names what the caller shows or leaves out to have a value from s; it
// is not ok where it has no choice. All claims are in one token, and all attributes are
// those of one key.
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

// proof reports whether the caller may leave out a value from s, but not choose it.
func proof(s rulefile.Source) bool { return controlOf(s, &route{}) == proved }

// writes reports whether the caller writes a value from s, or leaves it out.
func writes(s rulefile.Source) bool { return controlOf(s, &route{}) == claimed }

// sources are the places in which the value of a name is found, the first that
// has one.
func (p *pass) sources(name string) []rulefile.Source {
	id, _ := p.file.Identity(name)
	return id.Sources
}

// hasWildcard reports whether pattern has {name}, or {name...}.
func hasWildcard(pattern rulefile.Pattern, name string) bool {
	return strings.Contains(pattern.Path, "{"+name+"}") || strings.Contains(pattern.Path, "{"+name+"...}")
}
