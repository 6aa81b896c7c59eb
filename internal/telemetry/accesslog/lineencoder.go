package accesslog

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// lineEncoder encodes a log line as the handlers of log/slog do, as JSON or text, without
// reflection. Names are constants and need no quotes.
type lineEncoder struct {
	b      []byte
	asText bool // key=value, not JSON
}

// maxValue is the length at which a value is cut.
const maxValue = 8 << 10

func (p *lineEncoder) begin(plain bool, at time.Time) {
	p.b, p.asText = p.b[:0], plain
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

func (p *lineEncoder) end() {
	if !p.asText {
		p.b = append(p.b, '}')
	}
	p.b = append(p.b, '\n')
}

func (p *lineEncoder) name(name string) {
	if p.asText {
		p.b = append(p.b, ' ')
		p.b = append(p.b, name...)
		p.b = append(p.b, '=')
		return
	}
	p.b = append(p.b, ',', '"')
	p.b = append(p.b, name...)
	p.b = append(p.b, '"', ':')
}

// textIfSet writes text, unless it is empty.
func (p *lineEncoder) textIfSet(name, value string) {
	if value != "" {
		p.text(name, value)
	}
}

func (p *lineEncoder) text(name, value string) {
	p.name(name)
	if len(value) > maxValue {
		value = value[:maxValue] + "…"
	}
	switch {
	case !p.asText:
		p.b = appendJSON(p.b, value)
	case needsQuotes(value):
		p.b = strconv.AppendQuote(p.b, value)
	default:
		p.b = append(p.b, value...)
	}
}

func (p *lineEncoder) number(name string, value int64) {
	p.name(name)
	p.b = strconv.AppendInt(p.b, value, 10)
}

func (p *lineEncoder) milliseconds(name string, d time.Duration) {
	p.name(name)
	p.b = strconv.AppendFloat(p.b, float64(d.Microseconds())/1000, 'f', -1, 64)
}

func (p *lineEncoder) flag(name string) {
	p.name(name)
	p.b = append(p.b, "true"...)
}

const hexDigits = "0123456789abcdef"

// appendJSON appends s as a JSON string, as log/slog does: nothing is escaped for HTML.
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
		} else if r == '\u2028' || r == '\u2029' { // line ends in JavaScript
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

// needsQuotes reports whether a value of a text line needs quotes.
func needsQuotes(s string) bool {
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
