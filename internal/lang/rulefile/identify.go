package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// builtIn are the identities that exist without identify.
var builtIn = map[string]SourceKind{
	"ip": SourceIP, "method": SourceMethod, "path": SourcePath, "host": SourceHost,
	"route": SourceRoute, "everyone": SourceEveryone,
}

// builtInIdentities are the same as values of Identity.
var builtInIdentities = func() map[string]Identity {
	all := make(map[string]Identity)
	for name, k := range builtIn {
		all[name] = Identity{Name: Word{Text: name}, Sources: []Source{{Kind: k, Bits4: 32, Bits6: 64, Text: name}}}
	}
	return all
}()

// Identity returns the identity that a name in per, when or unless means, built-in or from
// identify. Its sources must not be modified.
func (f *File) Identity(name string) (Identity, bool) {
	if id, ok := builtInIdentities[name]; ok {
		return id, true
	}
	if i, ok := f.byName[name]; ok {
		return f.Identify[i], true
	}
	return Identity{}, false
}

// spelled returns value, normalized as id normalizes its values. If the sources of id do that
// differently, it returns value as it is, and conditions compare it in the spelling of each source.
func (id Identity) spelled(value string) string {
	for _, s := range id.Sources {
		if s.Spelling != id.Sources[0].Spelling {
			return value
		}
	}
	switch {
	case len(id.Sources) == 0:
		return value
	case id.is(SourceHost):
		return strings.ToLower(strings.TrimRight(value, "."))
	}
	return id.Sources[0].Spelling.Apply(value)
}

// spellings returns what a condition compares with the values of id if value is written: value in the
// spelling of each source.
func (id Identity) spellings(value string) []string {
	all := []string{id.spelled(value)}
	for _, s := range id.Sources {
		if text := s.Spelling.Apply(value); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

const identifyHint = "write names with where each is found: `identify: { user: jwt.sub, api_key: client header X-Api-Key }`"

func (d *decoder) identify(root object) {
	n := root.get("identify")
	if n == nil {
		return
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, "`identify` is a map of names, and this is "+n.What(), identifyHint)
		return
	}
	for _, f := range n.Fields {
		name := f.Key.Value
		n, _, replace := d.unwrapped(f.Value, &identityPlace, "from")
		if !d.identityName(f.Key, replace) {
			continue
		}
		id := Identity{Name: Word{name, f.Key.Pos}}
		if f.Value.Kind == yamltree.Null {
			d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(name+":"), "write where "+diag.Quote(name)+" is found, such as `jwt.sub` or `client header X-User`")
		} else if n != nil {
			id.Sources = d.sourcesOf(n, name)
		}
		if i, again := d.file.byName[name]; again {
			d.file.Identify[i] = id
			continue
		}
		// Kept even without a source, so that uses of the name are not reported as unknown.
		if d.file.byName == nil {
			d.file.byName = make(map[string]int)
		}
		d.file.byName[id.Name.Text] = len(d.file.Identify)
		d.file.Identify = append(d.file.Identify, id)
	}
}

func (d *decoder) identityName(key *yamltree.Node, replace bool) bool {
	name := key.Value
	if _, ok := builtIn[name]; ok {
		d.fail(key.Pos, diag.Quote(name)+" is built in and cannot be redefined", "choose another name, such as "+diag.Quote("my_"+name))
		return false
	}
	if strings.Trim(name, nameLetters) != "" || len(name) > 64 || name == "" {
		d.fail(key.Pos, diag.Quote(name)+" is not a name for an identity", "use up to 64 letters, digits, `-` and `_`, such as `api_key`")
		return false
	}
	return d.define("identity "+diag.Quote(name), key.Pos, replace, "keep one of the two; for a fallback write a list: "+diag.Quote(name+": [jwt.sub, client header X-User]"))
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func (d *decoder) sourcesOf(n *yamltree.Node, name string) []Source {
	var all []Source
	seen := make(map[string]bool)
	for _, item := range d.oneOrMore(n, "`identify`", identifyHint) {
		s, ok := d.source(item, name)
		if !ok {
			continue
		}
		if seen[s.Text] {
			d.fail(item.Pos, diag.Quote(s.Text)+" is in the list twice", "take one out: the first source that has a value is taken")
			continue
		}
		if len(all) > 0 && all[len(all)-1].always() {
			d.fail(item.Pos, diag.Quote(s.Text)+" is never reached, since every request has "+diag.Quote(all[len(all)-1].Text), "put "+diag.Quote(all[len(all)-1].Text)+" last")
			continue
		}
		seen[s.Text] = true
		all = append(all, s)
	}
	return all
}

// always reports whether every request has a value for it.
func (s Source) always() bool { return s.Kind >= SourceIP && s.Kind <= SourceEveryone }

// known reads n as the name of an identity.
func (d *decoder) known(n *yamltree.Node, what string) (Identity, bool) {
	name, ok := d.text(n, what, "write a name of `identify`, or `ip`, `route`, `everyone`")
	if !ok {
		return Identity{}, false
	}
	if id, ok := d.file.Identity(name); ok {
		return id, true
	}
	message := "unknown name " + diag.Quote(name) + ": it is neither built in nor in `identify`"
	if strings.Contains(name, ",") {
		d.fail(n.Pos, message, "write a list: "+diag.Quote("["+name+"]"))
		return Identity{}, false
	}
	if s, _ := parseSource(name, ""); s.Kind != SourceNone {
		d.fail(n.Pos, message, "give it a name, as in "+diag.Quote("identify: { "+suggestName(s)+": "+name+" }")+", and write the name here")
		return Identity{}, false
	}
	names := []string{"ip", "method", "path", "host", "route", "everyone"}
	for _, id := range d.file.Identify {
		names = append(names, id.Name.Text)
	}
	hint := "say where it is found: " + diag.Quote("identify: { "+name+": jwt."+name+" }") + "; a key that callers of the check API send is " + diag.Quote(name+": descriptor")
	if near := d.nearest(name, names); near != "" {
		hint = "did you mean " + diag.Quote(near) + "? else " + hint
	}
	d.fail(n.Pos, message, hint)
	return Identity{}, false
}

// suggestName derives a name from a source: user from jwt.sub, api_key from X-Api-Key.
func suggestName(s Source) string {
	name := strings.ToLower(s.Arg)
	name = strings.TrimPrefix(name, "x-")
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(nameLetters, r) && r != '-' {
			return r
		}
		return '_'
	}, name)
	if s.Kind == SourceAPIKey && s.Arg == "" {
		return "customer"
	}
	if _, taken := builtIn[name]; name == "" || name == "sub" || taken {
		return "user"
	}
	return name
}
