package rules

import (
	"net/textproto"
	"slices"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/envoy"
)

// Set is a compiled rule file: it finds the limits that apply to a request. It is
// immutable and safe for concurrent use. [Load] returns one.
type Set struct {
	config    Config
	ids       *identities
	entries   []entry  // classes, exemptions, rules
	classes   []string // names, the most important first
	shed      *shedder // of all requests; nil means none
	shedders  []*shedder
	rules     []*rule
	domains   *envoy.Set    // nil if no file has a domain
	index     index         // of entries
	verifier  *jwt.Verifier // nil means that no token is trusted
	keys      *keySource    // nil means that no API key is known
	instances int
	files     []string
	layers    [][]string // files by layer
	warnings  diag.List
	blind     map[Door]diag.List
	headers   map[string]bool // canonical names of the headers that rules read
	denied    tidegate.Answer // of bans: that of an access rule without its own
	states    sync.Pool       // of *state
	whoOnce   sync.Once
	who       []*identity // see callers
}

// Rules returns the names of the rules, in the order of the file.
func (s *Set) Rules() []string {
	names := make([]string, len(s.rules))
	for i, r := range s.rules {
		names[i] = r.name
	}
	return names
}

// Identities returns the sorted names of what rules can count by: those of the file and
// the built-in ones.
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

// ReadsHeader reports whether an identity, a cost or a number of the rules is read from the
// request header of that canonical name.
func (s *Set) ReadsHeader(name string) bool { return s.headers[name] }

// headersOf returns the canonical names of the headers that ids are read from. Costs and
// numbers that are read from a request are among ids.
func headersOf(ids *identities, keys *keySource) map[string]bool {
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
			case rulefile.SourceAPIKey:
				if keys != nil && keys.from.Header != "" {
					names[keys.from.Header] = true
				}
			}
		}
	}
	return names
}

// Files returns the files that the Set was loaded from, such as the rule file and its lists.
// When one of them changes, load the rules again.
func (s *Set) Files() []string { return slices.Clone(s.files) }

// LayerFiles returns the files of each layer, in the order in which they were read. Unlike Files,
// it returns only files of rules, without the keys that verify tokens.
func (s *Set) LayerFiles() [][]string { return s.layers }

// Warnings returns the problems of the rules that do not prevent their use.
func (s *Set) Warnings() Problems { return slices.Clone(s.warnings) }

// Instances returns how many instances share the limits, as the file says; 0 means that
// it does not say.
func (s *Set) Instances() int { return s.instances }

// Clamped returns how often the cost of a request was outside min and max of that rule and was
// moved to the nearer of them, since the Set was loaded.
func (s *Set) Clamped(rule string) int64 {
	if r := s.find(rule); r != nil {
		return r.clamped.Load()
	}
	return 0
}

// find returns the rule of that name, or nil.
func (s *Set) find(name string) *rule {
	for _, r := range s.rules {
		if r.name == name {
			return r
		}
	}
	return nil
}
