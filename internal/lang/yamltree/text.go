package yamltree

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// MaxSize bounds what a file costs: reading one is linear, and this is far above
// what anybody writes by hand.
const MaxSize = 1 << 20

// decode returns the lines of src and the characters of each, or a problem if src is
// too large or not text.
func decode(file string, src []byte) (diag.Lines, [][]rune, *diag.Problem) {
	start := diag.Pos{File: file, Line: 1, Col: 1, Len: 1}
	switch {
	case len(src) > MaxSize:
		return nil, nil, &diag.Problem{
			Pos:     start,
			Message: fmt.Sprintf("the file has %d bytes, and at most %d are read", len(src), MaxSize),
			Hint:    "split it, or move long lists into files of their own",
		}
	case bytes.HasPrefix(src, []byte("\xff\xfe")), bytes.HasPrefix(src, []byte("\xfe\xff")):
		return nil, nil, &diag.Problem{Pos: start, Message: "the file is in UTF-16", Hint: "save it as UTF-8"}
	}
	lines := diag.SplitLines(src)
	text := make([][]rune, len(lines))
	room := make([]rune, 0, len(src)) // for all lines
	for i, line := range lines {
		first := len(room)
		for _, r := range line {
			room = append(room, r)
		}
		text[i] = room[first:len(room):len(room)]
		if col, why, hint := notText(line); why != "" {
			return nil, nil, &diag.Problem{
				Pos:     diag.Pos{File: file, Line: i + 1, Col: col + 1, Len: 1},
				Source:  strings.ToValidUTF8(line, string(utf8.RuneError)),
				Message: why, Hint: hint,
			}
		}
	}
	return lines, text, nil
}

// notText returns the index of the first character of line that YAML does not allow, why
// it does not, and what to do. why is "" if all are allowed.
func notText(line string) (col int, why, hint string) {
	for i, r := range line {
		if r == utf8.RuneError && !strings.HasPrefix(line[i:], string(utf8.RuneError)) {
			return col, "bytes that are not UTF-8", "save the file as UTF-8"
		}
		if why, hint = unprintable(r); why != "" {
			return col, why, hint
		}
		col++
	}
	return 0, "", ""
}

// unprintable returns why YAML does not allow r, and what to do. why is "" if r is
// allowed.
func unprintable(r rune) (why, hint string) {
	switch {
	case r == '\t' || r >= ' ' && r <= '~' || r == 0x85 || r >= 0xa0 && r < 0xfeff || r > 0xfeff:
		return "", ""
	case r == 0:
		return "a NUL byte", "delete it; was the file written to its end?"
	case r == 0xfeff:
		return "a byte order mark inside of the file", "delete it; it may stand at the very beginning only"
	}
	return fmt.Sprintf("a control character, U+%04X", r), fmt.Sprintf(`delete it, or write "\x%02x" in double quotes`, r)
}
