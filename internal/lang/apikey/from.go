package apikey

import (
	"errors"
	"net/textproto"
	"strings"
)

// From is where a request carries its key.
type From struct {
	Ask    string // the name of the value in Request.Values
	Bearer bool   // Ask is the Authorization header, and the key is what follows the word Bearer
	Header string // canonical name of the header; "" if the key is not in a header
}

// Usual is where keys are by default.
const Usual = "client header X-Api-Key"

// ParseFrom parses the setting.
func ParseFrom(text string) (From, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		words = strings.Fields(Usual)
	}
	last := words[len(words)-1]
	canonical := textproto.CanonicalMIMEHeaderKey(last)
	kind := strings.Join(words[:len(words)-1], " ")
	switch {
	case kind == "" && last == "bearer":
		return From{Ask: "client header Authorization", Bearer: true, Header: "Authorization"}, nil
	case kind == "" && last == "basic.user":
		return From{Ask: last, Header: "Authorization"}, nil
	case kind == "query":
		return From{Ask: "query " + last}, nil
	case !isToken(last):
	case kind == "client header" || kind == "header" || kind == "metadata":
		return From{Ask: kind + " " + last, Header: canonical}, nil
	case kind == "cookie":
		return From{Ask: "cookie " + last, Header: "Cookie"}, nil
	}
	return From{}, errors.New("write where a request has its key: `client header X-Api-Key`, `bearer` (Authorization: Bearer KEY), `basic.user`, `query key`, `cookie key`, or `header X-Api-Key` if a trusted proxy sets it")
}

// isToken reports whether text can be the name of a header.
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// Key returns the key in the value for Ask.
func (f *From) Key(value string) string {
	if !f.Bearer {
		return value
	}
	scheme, key, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(key, " ")
}
