package domainfile

import (
	"fmt"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// text takes a field as text, which may be empty.
func (r *reader) text(f yamltree.Field, what string) (string, bool) {
	n := f.Value
	if n.Kind != yamltree.Scalar {
		r.fail(n.Pos, what+" is a single value, and this is "+n.What(), "write "+diag.Quote(f.Key.Value+":")+" and the value in the same line")
		return "", false
	}
	if len(n.Value) > maxText {
		r.fail(n.Pos, fmt.Sprintf("%s is longer than %d bytes", what, maxText), "write a shorter one")
		return "", false
	}
	return n.Value, true
}

// yes takes a field as true or false, in the spellings of YAML 1.1.
func (r *reader) yes(o object, word string) bool {
	f, ok := o.field(word)
	if !ok {
		return false
	}
	text, ok := r.text(f, diag.Quote(word))
	if !ok {
		return false
	}
	switch strings.ToLower(text) {
	case "true", "yes", "on", "y":
		return true
	case "false", "no", "off", "n":
		return false
	}
	r.fail(f.Value.Pos, diag.Quote(word)+" is true or false, and this is "+diag.Quote(text), "write "+diag.Quote(word+": true"))
	return false
}

// count takes a field as a number of requests.
func (r *reader) count(f yamltree.Field) uint32 {
	text, ok := r.text(f, "`requests_per_unit`")
	if !ok {
		return 0
	}
	plain := strings.ReplaceAll(text, "_", "")
	v, err := strconv.ParseUint(plain, 10, 32)
	if err != nil || len(plain) > 1 && plain[0] == '0' {
		r.fail(f.Value.Pos, "`requests_per_unit` is not a whole number from 0 to 4294967295: "+diag.Quote(text), "write `requests_per_unit: 100`")
	}
	return uint32(v)
}
