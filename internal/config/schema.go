package config

import "strings"

// SchemaID names the JSON Schema of the configuration.
const SchemaID = "https://tidegate.dev/schema/config.json"

// Schema returns the configuration file as a JSON Schema (draft 2020-12), for editors. Its fields
// are those of the table. It accepts every file without errors, and some that have errors:
// numbers that are too large, files that are not there, settings that contradict each other.
func Schema() map[string]any {
	s := schemaMap("")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = SchemaID
	s["title"] = "Configuration of tidegate serve"
	return s
}

// schemaMap describes the map at a prefix, which is "" or ends in a dot.
func schemaMap(prefix string) map[string]any {
	properties := make(map[string]any)
	for _, word := range fields(prefix) {
		path := prefix + word
		s, inner := lookup(path), len(fields(path+".")) > 0
		switch {
		case s == nil:
			properties[word] = schemaMap(path + ".")
		case inner: // a word, or a map with more about one of the words
			properties[word] = described(s, map[string]any{"anyOf": []any{schemaValue(s), schemaMap(path + ".")}})
		default:
			properties[word] = described(s, schemaValue(s))
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// described adds what the documentation says of a setting.
func described(s *setting, is map[string]any) map[string]any {
	is["description"] = strings.ReplaceAll(s.help, "`", "")
	is["examples"] = []string{s.example}
	if s.preset() != "" {
		is["default"] = s.preset()
	}
	return is
}

// schemaValue describes what may stand after the word of a setting. In YAML, 5 is a number, null
// nothing and 5m a text; all are text to the configuration, in quotes or not.
func schemaValue(s *setting) map[string]any {
	one := map[string]any{"type": []string{"string", "number", "boolean", "null"}}
	if len(s.slot.words) > 0 {
		var words []any
		for _, w := range s.slot.words {
			words = append(words, w)
			if w == "true" || w == "false" {
				words = append(words, w == "true")
			}
		}
		one = map[string]any{"enum": words}
	}
	if !s.slot.many {
		return one
	}
	item := []any{one}
	if s.item != "" {
		item = append(item, map[string]any{"type": "object", "additionalProperties": false, "required": []string{s.item}, "properties": map[string]any{s.item: one}})
	}
	if len(s.entry) > 0 {
		fields := make(map[string]any)
		for _, name := range s.entry {
			fields[name] = map[string]any{"type": []string{"string", "number", "boolean", "null"}}
		}
		item = append(item, map[string]any{"type": "object", "additionalProperties": false, "properties": fields})
	}
	all := append(item, map[string]any{"type": "array", "items": map[string]any{"anyOf": item}})
	if s.pairs {
		all = append(all, map[string]any{"type": "object", "additionalProperties": one})
	}
	return map[string]any{"anyOf": all}
}
