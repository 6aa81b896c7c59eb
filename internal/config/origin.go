package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// origin is where a value was written. The zero value is nowhere: a default.
type origin struct {
	pos    diag.Pos // without a line, File is the flag or the variable
	source string   // the line, or the flag or variable with its value
}

// String returns the origin of a value as operators read it.
func (s origin) String() string {
	switch {
	case s.pos.File == "":
		return "default"
	case s.pos.Line == 0:
		return s.pos.File
	}
	return fmt.Sprintf("%s:%d:%d", s.pos.File, s.pos.Line, s.pos.Col)
}

// rank orders origins: a flag wins over a variable, that over the file, that over a default.
func (s origin) rank() int {
	switch {
	case s.pos.File == "":
		return 0
	case s.inFile():
		return 1
	case strings.HasPrefix(s.pos.File, "--"):
		return 3
	}
	return 2
}

// inFile reports whether s is a place in the configuration file.
func (s origin) inFile() bool { return s.pos.Line > 0 }

// rawValue is one value as it was written: a scalar, or an item of a list.
type rawValue struct {
	origin
	text string
	dir  string // what a relative path is relative to; "" is the working folder
}

// mistake is why a value cannot be taken.
type mistake struct {
	message string // follows the name of the setting: "is not a valid size: `64x`"
	fix     string // the value to write instead
	hint    string // what to do, if it takes more than another value
	item    int    // the item of a list that it is about
	secret  bool   // the value is not to be shown
}

func (m mistake) any() bool { return m.message != "" }

// wrong returns a mistake that is mended by another value, fix; "" if that is unknown.
func wrong(message, fix string) mistake { return mistake{message: message, fix: fix} }

// advised returns a mistake with a hint; with "", the hint is an example of the setting.
func advised(message, hint string) mistake { return mistake{message: message, hint: hint} }

// quote marks what somebody wrote, without passwords.
func quote(text string) string { return diag.Quote(mask(text)) }

// mask replaces by stars what stands before the @ of a URL, users and passwords, and the passwords
// in its query. It keeps the length, so that carets stay where they are.
func mask(text string) string {
	text = passwords.ReplaceAllStringFunc(text, func(found string) string { // they may have an @
		name, value, _ := strings.Cut(found, "=")
		return name + "=" + strings.Repeat("*", utf8.RuneCountInString(value))
	})
	var b strings.Builder
	for _, part := range strings.SplitAfter(maskSpaced(text), " ") {
		b.WriteString(maskWord(part))
	}
	return b.String()
}

var passwords = regexp.MustCompile(`(?i)[?&][\w%.-]*(password|token|secret|signature|credential|sig)=[^&"` + "`" + `]*`)

// maskSpaced replaces by stars users and passwords that contain spaces: their words, taken one by
// one, would not look like a part of a URL.
func maskSpaced(text string) string {
	urls := strings.SplitAfter(text, "://")
	for i, rest := range urls {
		end := strings.LastIndex(rest, "@")
		if i > 0 && end >= 0 && strings.Contains(rest[:end], " ") {
			urls[i] = strings.Repeat("*", utf8.RuneCountInString(rest[:end])) + rest[end:]
		}
	}
	return strings.Join(urls, "")
}

// maskWord is mask for a word without spaces. It keeps the scheme of a URL.
func maskWord(w string) string {
	end := strings.LastIndex(w, "@")
	if end < 0 {
		return w
	}
	start := strings.Index(w, "://") + len("://")
	if start < len("://") {
		start = strings.Index(w, ":") + len(":")
	}
	if start < len(":") || start >= end {
		return w
	}
	return w[:start] + strings.Repeat("*", utf8.RuneCountInString(w[start:end])) + w[end:]
}
