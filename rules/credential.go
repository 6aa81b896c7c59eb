package rules

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Credential reports whether the values of a part of a limit's Scope may be secrets that grant
// access: cookies, what clients put into headers and queries, and everything whose name suggests a
// secret. A part that the rules do not have is treated as one.
func (s *Set) Credential(part string) bool {
	name, _, _ := strings.Cut(part, "/")
	for _, id := range []*identity{s.ids.byName[part], s.ids.byName[name]} {
		if id == nil {
			continue
		}
		for i := range id.sources {
			if id.scope(i) == part {
				return id.sources[i].credential()
			}
		}
	}
	return true
}

func (s *source) credential() bool {
	switch s.kind {
	case rulefile.SourceClientHeader, rulefile.SourceCookie, rulefile.SourceQuery:
		return true
	case rulefile.SourceHeader, rulefile.SourceMetadata, rulefile.SourceBody, rulefile.SourceDescriptor:
		return NamesCredential(s.arg)
	}
	return false
}

// NamesCredential reports whether the name of a header, a field or a descriptor entry suggests that
// its values are secrets.
func NamesCredential(name string) bool {
	plain := strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
	return plain == "key" || slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(plain, word) })
}

var credentialWords = []string{
	"apikey", "accesskey", "authkey", "secret", "token", "authorization", "bearer", "credential", "password", "passwd", "session", "cookie", "jwt",
}
