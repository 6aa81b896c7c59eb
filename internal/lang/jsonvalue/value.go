// Package jsonvalue finds single values in a JSON text without decoding the rest.
// It finds what encoding/json would: the two are compared by a fuzz test.
//
// Start with [Parse], then [Value.Find]. It is not a decoder: it does not search
// arrays, and converts values to text only.
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a JSON value as written, a part of the text it was found in. The
// empty Value is one that is not there. A Value that was not made by Parse has
// to be valid JSON without space around it; of anything else the answers mean
// nothing.
type Value string

// Parse reports whether text is one valid JSON value, and returns it. As with
// encoding/json, nesting deeper than 10,000 is not valid.
func Parse(text []byte) (Value, bool) {
	text = bytes.Trim(text, " \t\r\n")
	if !json.Valid(text) {
		return "", false
	}
	return Value(text), true
}

// Find follows members of nested objects: "user.id" is the member id of the
// member user. A name with a dot in it is not found.
func (v Value) Find(path string) Value {
	for more := true; more; {
		var name string
		name, path, more = strings.Cut(path, ".")
		v = v.Member(name)
	}
	return v
}

// Member returns the member of an object; of several with that name, the last.
func (v Value) Member(name string) Value {
	var found Value
	for m := v.Members(); m.Next(); {
		if m.Name == name {
			found = m.Value
		}
	}
	return found
}

// maxNumber is how long a number may be, once written without an exponent.
const maxNumber = 64

// Text returns a string as it is, a bool as true or false, and a number as
// decimal digits without an exponent: an integer as it is, so that no digit of
// a long id is lost, any other number as the shortest one that is the same
// float64, so that 1.0 and 1e0 are 1. Anything else has no text: null, arrays,
// objects, and numbers that take more than 64 characters.
func (v Value) Text() (string, bool) {
	if v == "" {
		return "", false
	}
	switch v[0] {
	case '"':
		return unquote(string(v)), true
	case 't', 'f':
		return string(v), true
	case 'n', '{', '[':
		return "", false
	}
	return number(string(v))
}

func number(s string) (string, bool) {
	if !strings.ContainsAny(s, ".eE") && s != "-0" {
		return s, len(s) <= maxNumber
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "", false
	}
	if f == 0 {
		return "0", true // also of -0
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	return s, len(s) <= maxNumber
}

// unquote leaves to encoding/json what is not plain: escapes, and bytes that
// are not UTF-8.
func unquote(quoted string) string {
	if len(quoted) >= 2 {
		if s := quoted[1 : len(quoted)-1]; strings.IndexByte(s, '\\') < 0 && utf8.ValidString(s) {
			return s
		}
	}
	var s string
	if json.Unmarshal([]byte(quoted), &s) != nil {
		return ""
	}
	return s
}
