package rules

import (
	"net/netip"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/apikey"
	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// state is what is known of one request while it is matched: each identity is looked up at most
// once, and only if a rule needs it. States are pooled by the Set.
type state struct {
	set        *Set
	request    *tidegate.Request
	identified Identified // nil means that the request's Values only know sources
	explains   bool       // nothing is counted

	before *predecessors // of the limits in force; nil means that there are none
	now    time.Time     // the time by which predecessors end

	measures *measures // nil means none
	ban      *order    // of a rule that was examined; nil means that there is none
	quiet    bool      // missing values are not counted

	class  int32 // in the current reading; -1 means none
	exempt int32 // the entry that exempts the request; -1 means that none does

	shedBy []*shedder // the shedders that shed the request

	readings []route.Reading // of the path
	way      int             // index of the current one

	values  []value // by slot
	touched []int   // the slots of values that are known
	routes  []route.Hit
	hits    []hit
	parts   []string

	address      netip.Addr // of the client, unmapped; see clientAddress
	addressKnown bool
	claims       jwt.Claims
	claimsKnown  bool
	keyRow       *apikey.Row // of the API key; nil means that there is none, or that it is unknown
	keyKnown     bool
	loose        jwt.Claims // not verified
	looseKnown   bool
}

// value is what was found for an identity.
type value struct {
	text   string
	source int // the number of the source that had it
	known  bool
	there  bool
}

func (s *Set) newState() *state {
	return &state{set: s, values: make([]value, len(s.ids.all))}
}

func (s *Set) state(r *tidegate.Request) *state {
	st := s.states.Get().(*state)
	st.request = r
	st.identified, _ = r.Values.(Identified)
	st.readings = s.index.tree.Readings(r.Path, r.RawPath, st.readings)
	return st
}

// done returns the state to the pool without references to the request.
func (st *state) done() {
	for _, slot := range st.touched {
		st.values[slot] = value{}
	}
	clear(st.routes)
	clear(st.hits)
	clear(st.parts[:cap(st.parts)]) // the last rule may have fewer than an earlier one
	if len(st.readings) > 1 {       // a single reading may stay until the next request
		clear(st.readings)
	}
	st.readings, st.way = st.readings[:0], 0
	st.touched, st.routes, st.hits, st.parts = st.touched[:0], st.routes[:0], st.hits[:0], st.parts[:0]
	st.request, st.identified, st.explains = nil, nil, false
	st.shedBy, st.before = st.shedBy[:0], nil
	st.measures, st.ban = nil, nil
	st.address, st.addressKnown = netip.Addr{}, false
	st.keyRow, st.keyKnown = nil, false
	if st.claimsKnown || st.looseKnown {
		st.claims, st.claimsKnown = jwt.Claims{}, false
		st.loose, st.looseKnown = jwt.Claims{}, false
	}
	st.set.states.Put(st)
}

// find returns the value of an identity; h is the rule that needs it, nil if none does. The result
// is false if the value is missing.
func (st *state) find(id *identity, h *hit) (value, bool) {
	if id.local {
		v := st.look(id, h)
		return v, v.there
	}
	v := &st.values[id.slot]
	if !v.known {
		*v = st.look(id, h)
		v.known = true
		st.touched = append(st.touched, id.slot)
	}
	return *v, v.there
}

// look asks the sources in order. An empty value counts as missing.
func (st *state) look(id *identity, h *hit) value {
	if st.identified != nil {
		if text, known := st.identified.Identity(id.name); known {
			switch first := &id.sources[0]; first.kind {
			case rulefile.SourceIP:
				text = network(text, first)
			case rulefile.SourceHost:
				text = plainHost(text)
			default:
				text = first.spelling.Apply(text)
			}
			return value{text: text, there: text != ""}
		}
	}
	for i := range id.sources {
		s := &id.sources[i]
		text := st.read(s, h)
		if s.spelling != 0 {
			text = s.spelling.Apply(text)
		}
		if text != "" || s.kind == rulefile.SourceEveryone {
			return value{text: text, source: i, there: true}
		}
	}
	if !st.explains && !st.quiet && !id.local && !id.always {
		id.missed.Add(1)
	}
	return value{}
}

func (st *state) read(s *source, h *hit) string {
	switch s.kind {
	case rulefile.SourceIP:
		return st.ip(s)
	case rulefile.SourceMethod:
		return st.request.Method
	case rulefile.SourcePath:
		return st.readings[st.way].Path()
	case rulefile.SourceHost:
		return plainHost(st.request.Host)
	case rulefile.SourceRoute:
		return st.route(h)
	case rulefile.SourcePathWildcard:
		return st.wildcard(h, s.arg)
	case rulefile.SourceJWT:
		text, _ := st.verified().Lookup(s.arg)
		return text
	case rulefile.SourceJWTUnverified:
		text, _ := st.unverified().Lookup(s.arg)
		return text
	case rulefile.SourceAPIKey:
		return st.apiKey(s.arg)
	case rulefile.SourceEveryone:
		return ""
	}
	text, _ := st.request.Value(s.ask)
	return text
}

// ip asks the front end for the address with its prefix; a front end without prefixes may know the
// address alone.
func (st *state) ip(s *source) string {
	if st.identified != nil {
		if text, known := st.identified.Identity("ip"); known {
			return network(text, s)
		}
	}
	if text, _ := st.request.Value(s.ask); text != "" {
		return text
	}
	if addr := st.clientAddress(); addr.IsValid() {
		return networkOf(addr, s)
	}
	return ""
}

// clientAddress returns the whole address of the client, to be compared with networks.
func (st *state) clientAddress() netip.Addr {
	if st.addressKnown {
		return st.address
	}
	st.addressKnown = true
	if st.identified != nil {
		if text, known := st.identified.Identity("ip"); known {
			st.address = parseAddress(text)
			return st.address
		}
	}
	text, ok := st.request.Value("addr")
	if !ok {
		text, _ = st.request.Value("ip")
	}
	st.address = parseAddress(text)
	return st.address
}

// addressOf returns the address to compare with networks, for a value of id.
func (st *state) addressOf(id *identity, v value) netip.Addr {
	if id.isIP(v.source) {
		return st.clientAddress()
	}
	return parseAddress(v.text)
}

// parseAddress returns the zero Addr for text that is not an address.
func parseAddress(text string) netip.Addr {
	if text == "" || len(text) > 64 || strings.IndexByte(text, '%') >= 0 {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// network returns the key of an address, as front ends make it: "192.0.2.1", "2001:db8:1:2::/64".
// Other text is returned unchanged.
func network(text string, s *source) string {
	if addr := parseAddress(text); addr.IsValid() {
		return networkOf(addr, s)
	}
	return text
}

func networkOf(addr netip.Addr, s *source) string {
	bits := s.bits6
	if addr.Is4() {
		bits = s.bits4
	}
	if bits == addr.BitLen() {
		return addr.String()
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return addr.String()
	}
	return p.String()
}
