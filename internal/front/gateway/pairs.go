package gateway

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// pairs writes names and values as the handlers of log/slog do, JSON or text, without
// looking at types. Names are ours and need no quotes.
type pairs struct {
	b     []byte
	plain bool // for people to read
}

// maxText is how much of one value a line has: who sends a longer path is seen by that.
const maxText = 8 << 10

func (p *pairs) begin(plain bool, at time.Time) {
	p.b, p.plain = p.b[:0], plain
	if plain {
		p.b = append(p.b, "time="...)
		p.b = at.AppendFormat(p.b, "2006-01-02T15:04:05.000Z07:00")
		p.b = append(p.b, " level=INFO msg=request"...)
		return
	}
	p.b = append(p.b, `{"time":"`...)
	p.b = at.AppendFormat(p.b, time.RFC3339Nano)
	p.b = append(p.b, `","level":"INFO","msg":"request"`...)
}

func (p *pairs) end() {
	if !p.plain {
		p.b = append(p.b, '}')
	}
	p.b = append(p.b, '\n')
}

func (p *pairs) name(name string) {
	if p.plain {
		p.b = append(p.b, ' ')
		p.b = append(p.b, name...)
		p.b = append(p.b, '=')
		return
	}
	p.b = append(p.b, ',', '"')
	p.b = append(p.b, name...)
	p.b = append(p.b, '"', ':')
}

// some is text, unless there is none.
func (p *pairs) some(name, value string) {
	if value != "" {
		p.text(name, value)
	}
}

func (p *pairs) text(name, value string) {
	p.name(name)
	if len(value) > maxText {
		value = value[:maxText] + "…"
	}
	switch {
	case !p.plain:
		p.b = appendJSON(p.b, value)
	case wantsQuotes(value):
		p.b = strconv.AppendQuote(p.b, value)
	default:
		p.b = append(p.b, value...)
	}
}

func (p *pairs) number(name string, value int64) {
	p.name(name)
	p.b = strconv.AppendInt(p.b, value, 10)
}

func (p *pairs) milliseconds(name string, d time.Duration) {
	p.name(name)
	p.b = strconv.AppendFloat(p.b, float64(d.Microseconds())/1000, 'f', -1, 64)
}

func (p *pairs) yes(name string) {
	p.name(name)
	p.b = append(p.b, "true"...)
}

const hexDigits = "0123456789abcdef"

// appendJSON appends s in quotes, as JSON of log/slog, without regard to HTML.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			b = appendEscape(b, c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[from:i]...)
			b = append(b, `\ufffd`...)
			from = i + size
		} else if r == '\u2028' || r == '\u2029' { // ends a line in JavaScript
			b = append(b, s[from:i]...)
			b = append(b, `\u202`...)
			b = append(b, hexDigits[r&0xf])
			from = i + size
		}
		i += size
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// wantsQuotes reports whether a value of a text line would be misread without.
func wantsQuotes(s string) bool {
	if s == "" {
		return true
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c <= ' ' || c == '"' || c == '=' || c == 0x7f {
				return true
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return true
		}
		i += size
	}
	return false
}
