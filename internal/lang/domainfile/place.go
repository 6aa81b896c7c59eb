package domainfile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// place is a map of the file, and what is known of its fields.
type place struct {
	name    string
	words   []string
	example string
	advice  map[string]string // what to write for fields that do not belong here
}

const (
	rootHint = "begin with `domain: my_domain`, then write `descriptors:`"
	// rightForm shows where rate_limit and its fields belong.
	rightForm  = "a descriptor with its limit is `- { key: user, value: ann, rate_limit: { unit: day, requests_per_unit: 5 } }`: "
	belowLimit = rightForm + "`unit` and `requests_per_unit` are below `rate_limit`, two spaces further in"
	besideKey  = rightForm + "`rate_limit` is below `key`, in the same column"
)

var rootPlace = place{
	name:    "a domain",
	words:   []string{"domain", "descriptors", "tidegate"},
	example: "domain: my_domain",
	advice: map[string]string{
		"rate_limit": besideKey, "unit": belowLimit, "requests_per_unit": belowLimit,
		"key": "descriptors are a list: `descriptors: [{ key: user }]`", "value": "descriptors are a list: `descriptors: [{ key: user, value: ann }]`",
		"rules": "a file has either `domain` and `descriptors` or `version` and `rules`: make two files", "version": "a file with `domain` has no version: remove it",
	},
}

var descriptorPlace = place{
	name:    "a descriptor",
	words:   []string{"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold", "metadata"},
	example: "- key: user",
	advice: map[string]string{
		"unit": belowLimit, "requests_per_unit": belowLimit,
		"unlimited": "`unlimited` is below `rate_limit`: `rate_limit: { unlimited: true }`",
		"name":      "`name` is below `rate_limit`, as its first field",
		"replaces":  "`replaces` is below `rate_limit`: `rate_limit: { replaces: [{ name: other }], unit: day, requests_per_unit: 5 }`",
		"tidegate":  "`tidegate` is below `rate_limit`, beside `unit`",
		"limits":    "`limits` is below `rate_limit` and `tidegate`: `rate_limit: { tidegate: { limits: 100/minute } }`",
		"domain":    "a file has one domain, at its beginning",
	},
}

var ratePlace = place{
	name:    "`rate_limit`",
	words:   []string{"unit", "requests_per_unit", "unlimited", "name", "replaces", "tidegate"},
	example: "rate_limit: { unit: minute, requests_per_unit: 100 }",
	advice: map[string]string{
		"shadow_mode": "`shadow_mode` is beside `rate_limit`, not below it", "quota_mode": "`quota_mode` is beside `rate_limit`, not below it",
		"detailed_metric": "`detailed_metric` is beside `rate_limit`, not below it", "value_to_metric": "`value_to_metric` is beside `rate_limit`, not below it",
		"share_threshold": "`share_threshold` is beside `rate_limit`, not below it", "metadata": "`metadata` is beside `rate_limit`, not below it",
		"descriptors": "`descriptors` is beside `rate_limit`, not below it",
		"algorithm":   "write `tidegate: { algorithm: token_bucket }`", "burst": "write `tidegate: { algorithm: token_bucket, burst: 20 }`",
		"limits": "write `tidegate: { limits: [100/minute, 1000/hour] }`",
	},
}

var replacesPlace = place{name: "an item of `replaces`", words: []string{"name"}, example: "- name: other"}

// misplaced returns the right form for a line on which a limit is probably indented wrongly.
func misplaced(line string) string {
	line = strings.TrimSpace(line)
	for _, word := range []string{"rate_limit:", "unit:", "requests_per_unit:"} {
		if strings.HasPrefix(line, word) {
			if word == "rate_limit:" {
				return besideKey
			}
			return belowLimit
		}
	}
	return ""
}

// object is a map of the file without its unknown fields, and without those that say nothing.
type object struct {
	at       diag.Pos
	fields   map[string]yamltree.Field
	empty    map[string]diag.Pos // fields after which nothing is written
	misspelt map[string]bool
}

// field returns a field that says something.
func (o object) field(word string) (yamltree.Field, bool) {
	f, ok := o.fields[word]
	return f, ok
}

// has reports whether the field is there, even if it says nothing or is misspelt.
func (o object) has(word string) bool {
	_, written := o.fields[word]
	_, empty := o.empty[word]
	return written || empty || o.misspelt[word]
}

// key returns where the name of a field is, or the map if the field is missing.
func (o object) key(word string) diag.Pos {
	if f, ok := o.fields[word]; ok {
		return f.Key.Pos
	}
	if pos, ok := o.empty[word]; ok {
		return pos
	}
	return o.at
}

// open takes n as a map with the fields of p and reports all others.
func (r *reader) open(n *yamltree.Node, p *place) (object, bool) {
	if n.Kind != yamltree.Map {
		r.fail(n.Pos, p.name+" is a map of fields, and this is "+n.What(), "write "+diag.Quote(p.example))
		return object{}, false
	}
	o := object{at: n.Pos, fields: make(map[string]yamltree.Field), empty: make(map[string]diag.Pos), misspelt: make(map[string]bool)}
	for _, f := range n.Fields {
		word := f.Key.Value
		switch {
		case !slices.Contains(p.words, word):
			near, hint := p.advise(word)
			o.misspelt[near] = true
			r.fail(f.Key.Pos, "unknown key "+diag.Quote(word)+" in "+p.name, hint)
		case nothing(f.Value):
			o.empty[word] = f.Key.Pos
		default:
			o.fields[word] = f
		}
	}
	return o, true
}

// advise returns the word that was probably meant, and what to write.
func (p *place) advise(word string) (near, hint string) {
	if hint, ok := p.advice[word]; ok {
		return "", hint
	}
	near = diag.Nearest(strings.ToLower(word), p.words)
	if near == "" {
		flat := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(word))
		for _, w := range p.words {
			if strings.ReplaceAll(w, "_", "") == flat {
				near = w
			}
		}
	}
	if near != "" {
		return near, "did you mean " + diag.Quote(near) + "?"
	}
	return "", "the keys of " + p.name + " are " + strings.Join(p.words, ", ")
}

// nothing reports whether n is null, in one of its spellings.
func nothing(n *yamltree.Node) bool {
	if n.Kind != yamltree.Scalar || n.Quoted {
		return n.Kind == yamltree.Null
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}
