// Package formvalue finds single values in the body of a form, as HTML pages send
// them: application/x-www-form-urlencoded or multipart/form-data. Servers differ in how
// they read a form that is not plain, so a value that some of them would read
// differently is not found.
//
// Start with [ParseURLEncoded] or [ParseMultipart], then [Form.Sole]. It does not keep
// files that were uploaded.
package formvalue

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// Form is the fields of a form. The zero value has none.
type Form struct {
	fields []field
}

// field is one that the form has, perhaps not the only one of its name.
type field struct {
	name, value string
	folded      string // see fold
	// unclear: servers differ in what its value is, or whether it has one.
	unclear bool
}

// maxFields is how many a form may have: servers drop those beyond a number of their
// own, which is often a thousand.
const maxFields = 1000

// ParseURLEncoded reads a=b&c=d. It reports false for a form that cannot be read, whose
// values are all unknown then.
func ParseURLEncoded(body []byte) (Form, bool) {
	var f Form
	rest := string(body)
	for rest != "" {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		// To some servers a semicolon separates as well.
		parts := strings.Count(pair, ";") + 1
		for part := range strings.SplitSeq(pair, ";") {
			if part == "" {
				continue
			}
			name, value, _ := strings.Cut(part, "=")
			name, err := url.QueryUnescape(name)
			if err != nil { // it is another name elsewhere: %u0061 is a, or nothing, or itself
				return Form{}, false
			}
			value, err = url.QueryUnescape(value)
			if !f.add(field{name: name, value: value, unclear: err != nil || parts > 1}) {
				return Form{}, false
			}
		}
	}
	return f.checked(true)
}

// checked returns the form, empty if it is not whole or not in UTF-8.
func (f Form) checked(whole bool) (Form, bool) {
	if !whole || !f.isUTF8() {
		return Form{}, false
	}
	return f, true
}

// add reports false for more fields than there may be.
func (f *Form) add(one field) bool {
	one.folded = fold(one.name)
	one.unclear = one.unclear || !utf8.ValidString(one.value)
	f.fields = append(f.fields, one)
	return len(f.fields) <= maxFields
}

// isUTF8 reports whether the form does not say that it is written in something else: a
// field of that name is how browsers tell.
func (f *Form) isUTF8() bool {
	for i := range f.fields {
		if f.fields[i].folded == "_charset_" && !strings.EqualFold(f.fields[i].value, "utf-8") {
			return false
		}
	}
	return true
}

// Sole returns the value of the field that a path as in a.b names: a.b or a[b]. It is not
// ok if the form has no such field, or more than one, or another that some servers take
// for it: one whose name differs in case or space, a[] or a[x] beside a.
func (f Form) Sole(path string) (text string, ok bool) {
	bracketed, folded := bracketed(path), fold(path)
	for i := range f.fields {
		one := &f.fields[i]
		switch {
		case one.name == path || one.name == bracketed:
			if ok || one.unclear {
				return "", false
			}
			text, ok = one.value, true
		case one.folded == folded, strings.HasPrefix(one.folded, folded+"_") && strings.IndexByte(one.name, '[') >= 0:
			return "", false
		}
	}
	return text, ok
}

// bracketed returns a.b.c as a[b][c].
func bracketed(path string) string {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		return path
	}
	return first + "[" + strings.ReplaceAll(rest, ".", "][") + "]"
}

// fold returns what names have in common that a server may take for one: in lower case,
// without space around, up to a NUL, with _ for dots, spaces and brackets as in PHP.
func fold(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.TrimFunc(name, func(r rune) bool { return r <= ' ' })
	name = strings.TrimSuffix(name, "[]")
	return inUnderscores.Replace(strings.ToLower(strings.ToUpper(name)))
}

var inUnderscores = strings.NewReplacer("]", "", "[", "_", ".", "_", " ", "_")
