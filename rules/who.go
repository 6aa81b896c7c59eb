package rules

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Who returns the identities of the sender of a request, by name: those that rules count by and
// that callers have in all their requests, such as tokens, keys, certificates, cookies and headers.
// A caller without any of them is identified by its address, as "ip".
func (l *Live) Who(r *tidegate.Request) map[string]string {
	st := l.Set().state(r)
	st.explains = true // neither missing values nor rejected credentials: the request itself is counted
	who := make(map[string]string)
	for _, id := range st.set.callers() {
		if v, ok := st.find(id, nil); ok && id.sources[v.source].brought() {
			who[id.name] = strings.Clone(v.text)
		}
	}
	if len(who) == 0 {
		who[st.set.ids.ip.name] = strings.Clone(st.ipKey())
	}
	st.done()
	return who
}

// brought reports whether callers send the value of s in all their requests.
func (s *source) brought() bool {
	switch s.kind {
	case rulefile.SourceJWT, rulefile.SourceJWTUnverified, rulefile.SourceAPIKey, rulefile.SourceBasicUser, rulefile.SourceTLSClientCN,
		rulefile.SourceCookie, rulefile.SourceHeader, rulefile.SourceClientHeader:
		return true
	}
	return false
}

// callers returns the identities that rules count by and that have a source whose value callers
// send in all their requests.
func (s *Set) callers() []*identity {
	s.whoOnce.Do(func() {
		seen := make(map[*identity]bool)
		for _, r := range s.rules {
			if r.subject == nil {
				continue
			}
			for i := range r.subject.parts {
				id := r.subject.parts[i].id
				if !seen[id] && !id.local && slices.ContainsFunc(id.sources, func(src source) bool { return src.brought() }) {
					s.who = append(s.who, id)
				}
				seen[id] = true
			}
		}
	})
	return s.who
}
