package domainfile

import (
	"strconv"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// metadata takes a field as values of any shape.
func (r *reader) metadata(f yamltree.Field) map[string]any {
	if f.Value.Kind != yamltree.Map {
		r.fail(f.Value.Pos, "`metadata` is a map, and this is "+f.Value.What(), "write `metadata: { team: payments }`")
		return nil
	}
	m, _ := f.Value.Plain(inJSON).(map[string]any)
	return m
}

// inJSON returns a scalar, or nothing, as JSON would have it.
func inJSON(n *yamltree.Node) any {
	if nothing(n) {
		return nil
	}
	if n.Quoted {
		return n.Value
	}
	switch n.Value {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if v, ok := number(n.Value); ok {
		return v
	}
	return n.Value
}

// number reads a decimal number, which other words such as "inf" and "0x1" are not.
func number(text string) (float64, bool) {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}
