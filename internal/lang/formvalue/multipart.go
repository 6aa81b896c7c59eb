package formvalue

import (
	"mime"
	"strings"
)

// ParseMultipart reads a form whose fields are parts between lines with the boundary. It
// accepts what browsers and HTTP libraries write and reports false for anything else,
// because parsers are known to differ there: text before the first part, folded headers,
// lines that do not end in CR LF, parameters given twice.
func ParseMultipart(body []byte, boundary string) (Form, bool) {
	if !isBoundary(boundary) {
		return Form{}, false
	}
	text, delimiter := string(body), "--"+boundary
	var f Form
	rest, ok := strings.CutPrefix(text, delimiter)
	for found := 1; ok; found++ {
		if end, last := strings.CutPrefix(rest, "--"); last {
			// One more would be a part to a parser that is content with less.
			whole := (end == "" || end == "\r\n") && strings.Count(text, delimiter) == found
			return f.checked(whole)
		}
		if rest, ok = strings.CutPrefix(rest, "\r\n"); !ok {
			break
		}
		var head, value string
		if head, rest, ok = strings.Cut(rest, "\r\n\r\n"); !ok {
			break
		}
		if value, rest, ok = strings.Cut(rest, "\r\n"+delimiter); !ok {
			break
		}
		var one field
		if one, ok = readPart(head, value); ok {
			ok = f.add(one)
		}
	}
	return Form{}, false
}

// isBoundary reports whether text is one by RFC 2046, without spaces.
func isBoundary(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'()+_,-./:=?"
	return text != "" && len(text) <= 70 && strings.Trim(text, letters) == ""
}

// readPart reads the headers of a part. A file is a field whose value is unclear.
func readPart(head, value string) (field, bool) {
	one := field{value: value}
	seen := make(map[string]bool, 3)
	for line := range strings.SplitSeq(head, "\r\n") {
		name, text, ok := strings.Cut(line, ":")
		name, text = strings.ToLower(name), strings.Trim(text, " \t")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsAny(line, "\r\n\x00") || seen[name] {
			return one, false
		}
		seen[name] = true
		switch name {
		case "content-disposition":
			if !one.readDisposition(text) {
				return one, false
			}
		case "content-type":
			_, params, err := mime.ParseMediaType(text)
			charset, given := params["charset"]
			one.unclear = one.unclear || err != nil || given && !IsUTF8(charset)
		case "content-transfer-encoding":
			switch strings.ToLower(text) {
			case "7bit", "8bit", "binary":
			default:
				one.unclear = true
			}
		}
	}
	return one, seen["content-disposition"]
}

// readDisposition reads form-data; name="a"; filename="b".
func (one *field) readDisposition(text string) bool {
	kind, rest, _ := strings.Cut(text, ";")
	if !strings.EqualFold(strings.Trim(kind, " \t"), "form-data") {
		return false
	}
	seen := make(map[string]bool, 2)
	for rest != "" {
		var key, value string
		var ok bool
		if key, rest, ok = strings.Cut(rest, "="); !ok {
			return false
		}
		if value, rest, ok = cutParameter(rest); !ok {
			return false
		}
		key = strings.ToLower(strings.Trim(key, " \t"))
		if seen[key] {
			return false
		}
		seen[key] = true
		switch key {
		case "name":
			if strings.IndexByte(value, '%') >= 0 { // decoded by some
				return false
			}
			one.name = value
		case "filename", "filename*":
			one.unclear = true
		default: // name* above all
			return false
		}
	}
	return seen["name"]
}

// cutParameter cuts a value, quoted or not, and the semicolon behind it off text. Escapes
// within quotes are read in too many ways.
func cutParameter(text string) (value, rest string, ok bool) {
	quoted, isQuoted := strings.CutPrefix(text, `"`)
	if isQuoted {
		if value, rest, ok = strings.Cut(quoted, `"`); !ok || strings.IndexByte(value, '\\') >= 0 {
			return "", "", false
		}
		space, after, _ := strings.Cut(rest, ";")
		return value, after, strings.Trim(space, " \t") == ""
	}
	value, rest, _ = strings.Cut(text, ";")
	value = strings.TrimRight(value, " \t")
	return value, rest, value != "" && !strings.ContainsAny(value, " \t\"\\")
}

// IsUTF8 reports whether a charset of that name reads like UTF-8.
func IsUTF8(charset string) bool {
	switch strings.ToLower(charset) {
	case "utf-8", "utf8", "us-ascii":
		return true
	}
	return false
}
