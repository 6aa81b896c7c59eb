package jwt

import (
	"encoding/base64"
	"strings"

	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// Claims are what a token says. The zero value says nothing.
type Claims struct{ object jsonvalue.Value }

// Lookup returns a claim by name; "realm.role" is the member role of the claim
// realm. Names may have dots of their own, as those that are URLs have: of the
// names that are there, the longest that name starts with is taken.
//
// A string is returned as it is, a bool as true or false, a number in digits
// without an exponent. Arrays, objects and null are missing, so a claim with a
// list of roles is not found; and so is one that is there twice, unless both say
// the same.
func (c Claims) Lookup(name string) (string, bool) {
	at := c.object
	for {
		var found jsonvalue.Value
		longest := -1
		torn := false
		for m := at.Members(); m.Next(); {
			n := len(m.Name)
			if n < longest || !leads(m.Name, name) {
				continue
			}
			torn = n == longest && (torn || !m.Value.Same(found))
			found, longest = m.Value, n
		}
		if longest < 0 || torn {
			return "", false
		}
		if longest == len(name) {
			return found.Text()
		}
		at, name = found, name[longest+1:]
	}
}

// leads reports whether name is first, or first and a dot and more.
func leads(first, name string) bool {
	rest, ok := strings.CutPrefix(name, first)
	return ok && (rest == "" || rest[0] == '.')
}

// Unverified returns what a token says without any proof that it is true:
// anybody can write one. It is for servers that only verified tokens reach, and
// for looking at a token. Nothing is checked but that it can be read.
func Unverified(token string) (Claims, bool) {
	if len(token) > MaxToken || !compact(token) {
		return Claims{}, false
	}
	_, rest, _ := strings.Cut(token, ".")
	middle, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(middle)
	if err != nil {
		return Claims{}, false
	}
	object, ok := jsonvalue.Parse(text)
	if !ok || object[0] != '{' {
		return Claims{}, false
	}
	return Claims{object}, true
}
