package rules

import (
	"net/textproto"
	"slices"
	"sync"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Set is a rule file, ready to be asked what requests are held to. It never
// changes and is used by many goroutines at once. [Load] makes it.
type Set struct {
	config    Config
	ids       *identities
	entries   []entry // exemptions, then rules
	rules     []*rule
	index     index
	verifier  *jwt.Verifier // nil: no token is believed
	instances int
	files     []string
	warnings  diag.List
	blind     map[Door]diag.List
	headers   map[string]bool // that are read, by canonical name
	states    sync.Pool       // of *state
}

// Rules returns the names of the rules, in the order of the file.
func (s *Set) Rules() []string {
	names := make([]string, len(s.rules))
	for i, r := range s.rules {
		names[i] = r.name
	}
	return names
}

// Identities returns the names by which somebody can be known to the rules, the
// built-in ones included, in order.
func (s *Set) Identities() []string {
	names := []string{"everyone", "host", "ip", "method", "path", "route"}
	for name := range s.ids.byName {
		if name[0] != ' ' { // see identities.from
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ReadsHeader reports whether the rules read the header of that canonical name, to know
// who is asking or what it costs.
func (s *Set) ReadsHeader(name string) bool { return s.headers[name] }

// headersOf returns the canonical names of the headers that identities are read from.
func headersOf(ids *identities) map[string]bool {
	names := make(map[string]bool)
	for _, id := range ids.byName {
		for _, s := range id.sources {
			switch s.kind {
			case rulefile.SourceHeader, rulefile.SourceClientHeader, rulefile.SourceMetadata:
				names[textproto.CanonicalMIMEHeaderKey(s.arg)] = true
			case rulefile.SourceJWT, rulefile.SourceJWTUnverified, rulefile.SourceBasicUser:
				names["Authorization"] = true
			case rulefile.SourceCookie:
				names["Cookie"] = true
			}
		}
	}
	return names
}

// Files returns the files that the Set was made of: when one of them changes, it
// is out of date.
func (s *Set) Files() []string { return slices.Clone(s.files) }

// Warnings returns what is doubtful about the rules and does not keep them from
// being used.
func (s *Set) Warnings() Problems { return slices.Clone(s.warnings) }

// Instances is how many instances the file says share the limits; 0 when it does
// not say.
func (s *Set) Instances() int { return s.instances }

// Clamped returns how often a rule's cost was outside its min and max and was
// moved there, since the Set was made.
func (s *Set) Clamped(rule string) int64 {
	if r := s.find(rule); r != nil {
		return r.clamped.Load()
	}
	return 0
}

func (s *Set) find(name string) *rule {
	for _, r := range s.rules {
		if r.name == name {
			return r
		}
	}
	return nil
}
