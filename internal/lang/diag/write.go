package diag

import (
	"io"
	"strconv"
	"strings"
)

// Write writes each problem as
//
//	rules.yaml:12:5: error: unknown field `limit`
//	    limit: 100/minute
//	    ^^^^^
//	  did you mean `limits`?
//
// The source line is shown without its indentation; of a long one, only the part
// around the caret. A waived problem has the reason for the waiver in place of source line
// and hint. Color is for terminals.
func (l List) Write(w io.Writer, color bool) error {
	_, err := w.Write(l.render(color))
	return err
}

func (l List) render(color bool) []byte {
	var text []byte
	for _, p := range l {
		text = p.render(text, colors(color))
	}
	return text
}

func (p Problem) render(text []byte, in colors) []byte {
	text = append(text, in.bold(p.place())...)
	text = append(text, p.heading(in)+": "+in.bold(printable(p.Message))+"\n"...)
	if p.Waived != "" { // nothing is to be done about it
		return append(text, "  "+printable(p.Waived)+"\n"...)
	}
	if line, spaces, carets := p.excerpt(); carets > 0 {
		text = append(text, "    "+line+"\n"...)
		text = append(text, "    "+strings.Repeat(" ", spaces)+in.green(strings.Repeat("^", carets))+"\n"...)
	}
	for line := range strings.Lines(p.Hint) {
		text = append(text, "  "+printable(strings.TrimSuffix(line, "\n"))+"\n"...)
	}
	return text
}

// place returns "file:line:col: ", which editors and terminals turn into a link. A problem about
// a whole file has no line, and one about no file has no place.
func (p Problem) place() string {
	var b strings.Builder
	for _, part := range []string{printable(p.File), number(p.Line), number(p.Col)} {
		if part == "" {
			break
		}
		b.WriteString(part + ":")
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	return b.String()
}

// number returns n in decimal; "" for 0, which stands for none.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (p Problem) heading(in colors) string {
	word := p.Severity.String()
	if p.Waived != "" {
		word = "waived"
	}
	if p.Check != "" {
		word += "[" + printable(p.Check) + "]"
	}
	if p.Waived != "" {
		return in.green(word)
	}
	if p.Severity == Warning {
		return in.yellow(word)
	}
	return in.red(word)
}

// colors makes text colored if it is true.
type colors bool

func (in colors) bold(s string) string   { return in.write("1", s) }
func (in colors) red(s string) string    { return in.write("1;31", s) }
func (in colors) green(s string) string  { return in.write("1;32", s) }
func (in colors) yellow(s string) string { return in.write("1;33", s) }

func (in colors) write(code, s string) string {
	if !in || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
