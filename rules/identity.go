package rules

import (
	"slices"
	"strconv"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// identity is what a name in per, when, unless and for means. Its value is found once per request
// and kept in the state's slot of that number.
type identity struct {
	name    string
	sources []source
	slot    int
	// local: the value depends on the pattern of the rule that asks (route, path
	// wildcards), so that there is none for the request as a whole, and no slot.
	local bool
	// never missing: method, path, host, route, everyone. They may be empty.
	always bool
	missed atomic.Int64 // requests of rules that asked for it and found none
}

// source is one place where an identity is looked for.
type source struct {
	kind         rulefile.SourceKind
	ask          string // what Request.Values calls it; see askFor
	arg          string // the claim or wildcard
	bits4, bits6 int
	spelling     rulefile.Spelling
	text         string // as written: part of the scope where there are several
}

func newSource(s rulefile.Source) source {
	return source{kind: s.Kind, ask: askFor(s), arg: s.Arg, bits4: s.Bits4, bits6: s.Bits6, spelling: s.Spelling, text: s.Text}
}

// askFor returns the name by which Request.Values looks up s.
func askFor(s rulefile.Source) string {
	switch s.Kind {
	case rulefile.SourceIP:
		if s.Bits4 == 32 && s.Bits6 == 64 {
			return "ip"
		}
		return "ip /" + strconv.Itoa(s.Bits4) + " /" + strconv.Itoa(s.Bits6)
	case rulefile.SourceHeader:
		return "header " + s.Arg
	case rulefile.SourceClientHeader:
		return "client header " + s.Arg
	case rulefile.SourceCookie:
		return "cookie " + s.Arg
	case rulefile.SourceQuery:
		return "query " + s.Arg
	case rulefile.SourceBody:
		return "body." + s.Arg
	case rulefile.SourceBasicUser:
		return "basic.user"
	case rulefile.SourceTLSClientCN:
		return "tls.client_cn"
	case rulefile.SourceMetadata:
		return "metadata " + s.Arg
	}
	return s.Arg
}

// sourceKey is what makes sources equal.
type sourceKey struct {
	kind     rulefile.SourceKind
	spelling rulefile.Spelling
	ask      string
}

// identities are all that a rule set asks for, by name.
type identities struct {
	file   *rulefile.File // nil once all are found
	byName map[string]*identity
	// bySource has the identities with a slot and a single source; of equal ones the first.
	bySource map[sourceKey]*identity
	all      []*identity // those with a slot, by slot
	byPath   []int       // slots whose value depends on how the path is read
	ip       *identity
	// unnamed are the sources used without a name, possibly more than once.
	unnamed []rulefile.Source
}

func newIdentities(f *rulefile.File) *identities {
	ids := &identities{file: f, byName: make(map[string]*identity), bySource: make(map[sourceKey]*identity)}
	for _, w := range f.Identify {
		ids.find(w.Name.Text)
	}
	ids.ip = ids.find("ip")
	return ids
}

// find returns the identity of that name: one of identify, or a built-in one.
func (ids *identities) find(name string) *identity {
	if id := ids.byName[name]; id != nil {
		return id
	}
	w, _ := ids.file.Identity(name)
	return ids.add(name, w.Sources...)
}

// from returns the identity of a source that was written without a name: the one of identify with
// just this source, or a new one named after its text.
func (ids *identities) from(s rulefile.Source) *identity {
	ids.unnamed = append(ids.unnamed, s)
	if id := ids.bySource[sourceKey{s.Kind, s.Spelling, askFor(s)}]; id != nil {
		return id
	}
	name := s.Text
	if ids.byName[name] != nil {
		name = " " + name // no name that was written starts with a space
	}
	return ids.add(name, s)
}

func (ids *identities) add(name string, sources ...rulefile.Source) *identity {
	id := &identity{name: name, slot: -1}
	for _, s := range sources {
		id.sources = append(id.sources, newSource(s))
		switch s.Kind {
		case rulefile.SourceRoute, rulefile.SourcePathWildcard:
			id.local = true
		}
	}
	if len(sources) == 1 {
		switch sources[0].Kind {
		case rulefile.SourceMethod, rulefile.SourcePath, rulefile.SourceHost, rulefile.SourceRoute, rulefile.SourceEveryone:
			id.always = true
		}
	}
	if !id.local {
		id.slot = len(ids.all)
		if slices.ContainsFunc(sources, func(s rulefile.Source) bool { return s.Kind == rulefile.SourcePath }) {
			ids.byPath = append(ids.byPath, id.slot)
		}
		ids.all = append(ids.all, id)
		if len(sources) == 1 {
			key := sourceKey{sources[0].Kind, sources[0].Spelling, id.sources[0].ask}
			if ids.bySource[key] == nil {
				ids.bySource[key] = id
			}
		}
	}
	ids.byName[name] = id
	return id
}

// ofPath reports whether the value may be a part of the path.
func (id *identity) ofPath() bool {
	return slices.ContainsFunc(id.sources, func(s source) bool {
		return s.kind == rulefile.SourcePath || s.kind == rulefile.SourcePathWildcard
	})
}

// descriptor reports whether all sources of id are what the caller of a check API sends.
func (id *identity) descriptor() bool {
	for i := range id.sources {
		if id.sources[i].kind != rulefile.SourceDescriptor {
			return false
		}
	}
	return true
}

// scope returns the scope of the counters for values from source number i.
func (id *identity) scope(i int) string {
	if len(id.sources) == 1 {
		return id.name
	}
	return id.name + "/" + id.sources[i].text
}

// isIP reports whether source number i is the client's address. Networks are compared with the
// whole address, not with the prefix that is counted.
func (id *identity) isIP(i int) bool { return id.sources[i].kind == rulefile.SourceIP }
