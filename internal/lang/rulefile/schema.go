package rulefile

import (
	"maps"
	"strings"
)

// SchemaID names the JSON Schema of rule files.
const SchemaID = "https://tidegate.dev/schema/rules.json"

// Schema returns the language as a JSON Schema (draft 2020-12), for editors. Its maps and their
// words are those that are read, so that neither knows a word that the other does not. It accepts
// every rule file without errors, and some that have errors: names that nothing has, numbers
// that contradict each other.
func Schema() map[string]any {
	s := schemaMap(&rootPlace)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = SchemaID
	s["title"] = "Tidegate rule file"
	s["required"] = []string{"version"}
	defs := make(map[string]any)
	for _, p := range places {
		if p != &rootPlace {
			defs[schemaName(p)] = schemaMap(p)
		}
	}
	maps.Copy(defs, schemaValues)
	s["$defs"] = defs
	return s
}

// schemaName returns what a map is called in the schema: one-rule, one-branch-of-for, limits.
func schemaName(p *place) string {
	name := p.name
	for _, article := range []string{"a ", "an "} {
		if rest, ok := strings.CutPrefix(name, article); ok {
			name = "one " + rest
		}
	}
	return strings.NewReplacer("`", "", " ", "-").Replace(name)
}

// schemaMap returns the schema of a map of the language.
func schemaMap(p *place) map[string]any {
	fields := make(map[string]any)
	for _, word := range p.words {
		fields[word] = schemaField(p, word)
	}
	for old, now := range p.renamed {
		fields[old] = map[string]any{"deprecated": true, "description": "called `" + now + "` now", "allOf": []any{schemaField(p, now)}}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": fields, "description": p.name + ": " + p.example}
	if needed := schemaNeeds[p]; len(needed) > 0 {
		s["required"] = needed
	}
	return s
}

// schemaNeeds are the words that each map must have.
var schemaNeeds = map[*place][]string{
	&rulePlace: {"name"}, &classPlace: {"name"}, &tablePlace: {"by", "rows", "else"}, &quotaPlace: {"amount"}, &concurrencyPlace: {"slots", "lease"},
	&elasticPlace: {"while", "up_to"}, &shedPlace: {"while"}, &reservePlace: {"sum"}, &queuePlace: {"places", "max_wait"},
	&countPlace: {"status"}, &tierUsePlace: {"from", "else"},
}

func ref(name string) map[string]any     { return map[string]any{"$ref": "#/$defs/" + name} }
func inPlace(p *place) map[string]any    { return ref(schemaName(p)) }
func anyOf(all ...any) map[string]any    { return map[string]any{"anyOf": all} }
func words(all ...string) map[string]any { return map[string]any{"enum": all} }

// many returns the schema of one such value, or of a list of one or more.
func many(one any) map[string]any { return anyOf(one, listOf(one)) }

func listOf(one any) map[string]any {
	return map[string]any{"type": "array", "minItems": 1, "items": one}
}

// mapOf returns the schema of a map with any names, all of whose values are such.
func mapOf(one any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": one}
}

// schemaValues are the kinds of values, by the names that ref uses. An editor reads 5 in YAML as a number,
// 5m as a string and null as null; in a rule file all are text, in quotes or not.
var schemaValues = map[string]any{
	"text":        map[string]any{"type": []string{"string", "number", "boolean", "null"}},
	"number":      map[string]any{"type": []string{"integer", "string"}, "minimum": 1, "pattern": `^\s*[0-9]+\s*$`},
	"yes":         map[string]any{"enum": []any{true, false, "true", "false"}},
	"only-true":   map[string]any{"enum": []any{true, "true"}},
	"duration":    map[string]any{"type": "string", "pattern": `^\s*\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+\s*$`},
	"size":        map[string]any{"type": []string{"integer", "string"}, "minimum": 1, "pattern": `^\s*[0-9]+\s*([KMG]i?)?B?\s*$`},
	"percentage":  map[string]any{"type": "string", "pattern": `^\s*[0-9]+(\.[0-9]+)?\s*%\s*$`},
	"rate":        map[string]any{"type": "string", "pattern": `^\s*[0-9]+\s*/\s*\S+\s*$`},
	"status":      map[string]any{"type": []string{"integer", "string"}, "minimum": 400, "maximum": 599},
	"conditions":  map[string]any{"type": "object", "minProperties": 1, "additionalProperties": many(ref("text"))},
	"waivers":     mapOf(ref("text")),
	"limit":       anyOf(ref("rate"), inPlace(&limitsPlace)),
	"rows":        map[string]any{"type": "object", "minProperties": 1, "additionalProperties": anyOf(ref("some-limits"), ref("rows"))},
	"some-limits": anyOf(words("unlimited"), many(ref("limit"))),
	"all-limits":  anyOf(ref("some-limits"), inPlace(&tablePlace)),
}

// schemaWords are the schemas of fields that are the same in every map that has them.
var schemaWords = map[string]any{
	"name": ref("text"), "match": many(ref("text")), "when": ref("conditions"), "unless": ref("conditions"),
	"limits": ref("all-limits"), "quota": anyOf(ref("rate"), inPlace(&quotaPlace)), "concurrency": inPlace(&concurrencyPlace),
	"over": anyOf(words("hard"), inPlace(&overPlace)), "cost": anyOf(ref("number"), inPlace(&costPlace)), "queue": inPlace(&queuePlace),
	"shed": inPlace(&shedPlace), "respond": inPlace(&respondPlace), "waive": ref("waivers"), "replace": ref("only-true"), "from": ref("text"),
	"on_store_failure": words("local", "allow", "deny"), "on_full": words("evict", "refuse"),
	"consistency": anyOf(words(consistencies...), inPlace(&consistencyPlace)), "on_partition": words("continue", "share"),
}

// schemaFields are the schemas of the other fields, by map.
var schemaFields = map[*place]map[string]any{
	&rootPlace: {
		"version": map[string]any{"enum": []any{1, "1"}}, "include": many(ref("text")),
		"identify": mapOf(anyOf(many(ref("text")), inPlace(&identityPlace))),
		"lists":    mapOf(anyOf(map[string]any{"type": "string", "pattern": `^\s*file\s`}, listOf(ref("text")), inPlace(&listPlace))),
		"tiers":    mapOf(inPlace(&tierPlace)), "classes": listOf(inPlace(&classPlace)), "exempt": listOf(inPlace(&exemptPlace)), "defaults": inPlace(&defaultsPlace),
		"rules":   map[string]any{"type": "array", "items": inPlace(&rulePlace)},
		"headers": inPlace(&headersPlace), "instances": ref("number"), "replace": many(words(settingWords...)),
	},
	&rulePlace: {
		"per": many(ref("text")), "missing": words("ip", "skip", "refuse"), "tier": inPlace(&tierUsePlace),
		"for": listOf(inPlace(&branchPlace)), "instead_of": many(ref("text")), "count": inPlace(&countPlace), "block": ref("duration"),
		"set_aside": map[string]any{"type": "object", "minProperties": 1, "additionalProperties": ref("percentage")},
		"defer":     inPlace(&deferPlace), "deny": ref("only-true"), "mode": words("enforce", "shadow", "disabled"), "enforce": ref("percentage"),
		"candidate": ref("limit"),
	},
	&branchPlace:   {"until": map[string]any{"type": "string"}, "reason": ref("text")},
	&listPlace:     {"values": many(ref("text")), "file": ref("text")},
	&identityPlace: {"from": many(ref("text"))},
	&tierUsePlace:  {"else": ref("text")},
	&tablePlace:    {"by": many(ref("text")), "rows": ref("rows"), "else": ref("some-limits")},
	&limitsPlace: {
		"rate": ref("rate"), "burst": ref("number"), "algorithm": words(algorithms...), "refill": words("at_once"), "parts": ref("number"), "ceiling": ref("yes"),
		"count_rejected": ref("yes"), "per": ref("text"), "max": ref("number"), "else": ref("number"),
	},
	&quotaPlace:       {"amount": ref("rate"), "zone": ref("text"), "anchor": ref("text"), "status": ref("status")},
	&concurrencyPlace: {"slots": ref("number"), "lease": ref("duration")},
	&consistencyPlace: {"mode": words(consistencies...), "deny_cache": ref("yes"), "coalesce": ref("yes")},
	&overPlace:        {"soft": ref("percentage"), "max_time": ref("duration"), "elastic": inPlace(&elasticPlace)},
	&elasticPlace: {
		"while": map[string]any{"type": "string", "pattern": `^\s*(` + strings.Join(signals, "|") + `)\s*<`},
		"up_to": map[string]any{"type": "string", "pattern": `^\s*[0-9.]+\s*x\s*$`},
	},
	&shedPlace: {
		"while": many(map[string]any{"type": "string", "pattern": `^\s*(` + strings.Join(shedSignals, "|") + `)\s*>`}),
		"never": ref("text"), "mode": words("enforce", "shadow"),
	},
	&costPlace:    {"reserve": anyOf(many(ref("text")), inPlace(&reservePlace)), "else": ref("number"), "min": ref("number"), "max": ref("number"), "settle": ref("text")},
	&reservePlace: {"sum": listOf(ref("text"))},
	&queuePlace:   {"places": ref("number"), "max_wait": ref("duration"), "drop": words("newest", "oldest")},
	&deferPlace: {
		"keep": ref("duration"), "places": ref("number"), "per_key": ref("number"), "max_body": ref("size"),
		"to": map[string]any{"type": "string", "pattern": `^\s*stream\s+\S+\s*$`},
	},
	&countPlace:   {"status": many(map[string]any{"type": []string{"integer", "string"}})},
	&respondPlace: {"status": ref("status"), "message": ref("text"), "body": ref("text"), "type": ref("text")},
	&headersPlace: {"dialect": many(words(dialects...)), "reset": words("delta", "epoch"), "retry_jitter": ref("percentage")},
}

// schemaField returns the schema of the value of a field of p.
func schemaField(p *place, word string) any {
	if s, ok := schemaFields[p][word]; ok {
		return s
	}
	return schemaWords[word]
}

// consistencies are the words of `consistency`.
var consistencies = []string{"strict", "leased", "eventual", "split"}
