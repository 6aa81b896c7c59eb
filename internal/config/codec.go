package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// codec reads and writes values of one type. What write returns, read parses to the same value,
// unless it is a URL with a password, which is written without it.
type codec[T any] struct {
	read  func(rawValue) (T, mistake)
	write func(T) string // returns "" for no value
	words []string       // all values, if they can be listed
}

// slot is a field of Config together with the codec of its value.
type slot struct {
	many  bool                                // no values means none
	yesNo bool                                // a flag without a value means true
	set   func(*Config, []rawValue) []mistake // no values means none
	write func(*Config) []string              // returns none for no value
	words []string                            // all values, if they can be listed
}

// one returns a slot for a single value.
func one[T any](field func(*Config) *T, f codec[T]) slot {
	return slot{
		words: f.words,
		set: func(c *Config, values []rawValue) []mistake {
			var v T
			if len(values) > 0 {
				var m mistake
				if v, m = readClean(f, values[0]); m.any() {
					return []mistake{m}
				}
			}
			*field(c) = v
			return nil
		},
		write: func(c *Config) []string {
			if text := f.write(*field(c)); text != "" {
				return []string{text}
			}
			return nil
		},
	}
}

// list returns a slot for several values, none of them twice.
func list[T any](field func(*Config) *[]T, f codec[T]) slot {
	return slot{
		many: true,
		set: func(c *Config, values []rawValue) (wrongs []mistake) {
			var all []T
			seen := make(map[string]bool)
			for i, w := range values {
				v, m := readClean(f, w)
				is := fmt.Sprint(v) // as written: equal Go values may print differently
				if !m.any() && seen[is] {
					m = advised("is given twice: "+quote(w.text), "keep one of them")
				}
				if m.any() {
					m.item = i
					wrongs = append(wrongs, m)
					continue
				}
				seen[is] = true
				all = append(all, v)
			}
			if wrongs == nil {
				*field(c) = all
			}
			return wrongs
		},
		write: func(c *Config) []string {
			var texts []string
			for _, v := range *field(c) {
				texts = append(texts, f.write(v))
			}
			return texts
		},
	}
}

// readClean parses a value with f, after removing what no value contains.
func readClean[T any](f codec[T], w rawValue) (v T, m mistake) {
	w.text = strings.TrimSpace(w.text)
	switch {
	case w.text == "":
		return v, advised("is empty", "")
	case !utf8.ValidString(w.text):
		return v, advised("is not in UTF-8", "")
	case strings.Contains(w.text, "-----BEGIN"):
		return v, mistake{message: "is a key itself, and the name of a file is expected", hint: "write the key into a file of its own and name that", secret: true}
	case strings.ContainsFunc(w.text, unicode.IsControl):
		return v, advised("has a control character: "+fmt.Sprintf("%q", mask(w.text)), "")
	}
	return f.read(w)
}

// text is a value that may be anything.
var text = codec[string]{
	read:  func(w rawValue) (string, mistake) { return w.text, mistake{} },
	write: func(v string) string { return v },
}

// oneOf returns the codec of one of words.
func oneOf(words ...string) codec[string] {
	return codec[string]{
		read: func(w rawValue) (string, mistake) {
			if !slices.Contains(words, w.text) {
				return "", notOneOf(w.text, words)
			}
			return w.text, mistake{}
		},
		write: func(v string) string { return v },
		words: words,
	}
}

// named is oneOf for words that stand for values.
func named[T comparable](words []string, values []T) codec[T] {
	return codec[T]{
		read: func(w rawValue) (v T, m mistake) {
			i := slices.Index(words, w.text)
			if i < 0 {
				return v, notOneOf(w.text, words)
			}
			return values[i], mistake{}
		},
		write: func(v T) string { return words[slices.Index(values, v)] },
		words: words,
	}
}

// notOneOf returns the mistake of a text that is none of words, with the nearest of them.
func notOneOf(text string, words []string) mistake {
	hint := "write " + diag.Choice(words)
	if near := diag.Nearest(text, words); near != "" && len(words) > 1 {
		hint = "did you mean " + quote(near) + "? it is " + diag.Choice(words)
	}
	return advised("cannot be "+quote(text), hint)
}

// yesNo returns a slot for true or false.
func yesNo(field func(*Config) *bool) slot {
	s := one(field, named([]string{"true", "false"}, []bool{true, false}))
	s.yesNo = true
	return s
}
