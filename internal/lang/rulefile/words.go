package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// place is a kind of map in the language, with the fields that it may have.
type place struct {
	name    string // as in "unknown field in a rule"
	words   []string
	example string
	advice  map[string]advice // for words that people know from elsewhere
	renamed map[string]string // from the old names of fields, which still work, to the new ones
}

// advice is a hint what to write instead of an unknown word, and the field that the word
// probably means, if any, which is then not reported as missing.
type advice struct{ means, hint string }

// advise returns what to write instead of an unknown word.
func (p *place) advise(word string) advice {
	if a, ok := p.advice[word]; ok {
		return a
	}
	if near := diag.Nearest(word, p.words); near != "" {
		return advice{near, "did you mean " + diag.Quote(near) + "?"}
	}
	if home := homes(word); home != "" {
		return advice{"", diag.Quote(word) + " is a field of " + home}
	}
	return advice{"", "the fields are " + strings.Join(p.words, ", ")}
}

// homes returns the names of the places that have the field word, for a hint.
func homes(word string) string {
	var names []string
	for _, p := range places {
		if slices.Contains(p.words, word) {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", or of ")
}

// emptyHint returns the hint for a field without a value.
func emptyHint(word string) string {
	example := examples[word]
	for _, p := range places {
		if strings.HasPrefix(p.example, word+":") {
			example = p.example
		}
	}
	if example == "" {
		return "write a value, or remove the field"
	}
	return "write a value, as in " + diag.Quote(example) + ", or remove the field"
}

// examples are values of fields that are no place of their own, for hints.
var examples = map[string]string{
	"include": "include: rules.d/*.yaml", "identify": "identify: { user: jwt.sub }", "lists": "lists: { partners: [203.0.113.0/24] }",
	"exempt": "exempt: [{ match: /healthz }]", "instances": "instances: 3", "name": "name: api", "match": "match: /api/",
	"per": "per: ip", "missing": "missing: skip", "when": "when: { role: premium }", "unless": "unless: { role: admin }",
	"for":        "for: [{ when: { role: premium }, limits: 1000/minute }]",
	"instead_of": "instead_of: api", "block": "block: 15m", "deny": "deny: true", "mode": "mode: shadow", "enforce": "enforce: 25%",
	"candidate": "candidate: 80/minute", "rate": "rate: 100/minute", "burst": "burst: 200", "amount": "amount: 1000/month",
	"classes": "classes: [{ name: critical, match: POST /v1/charges }, { name: rest }]", "set_aside": "set_aside: { critical: 20% }",
	"waive":   "waive: { invented-key: \"the partner's proxy strips it\" }",
	"replace": "replace: true",
	"until":   "until: 2030-01-31T00:00:00Z",
	"rules":   "rules: [{ name: api, per: ip, limits: 100/minute }]",
}
