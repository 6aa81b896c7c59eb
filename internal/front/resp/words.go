package resp

// words splits a line as Redis does: at blanks, except in "double" quotes, which know
// \n \r \t \b \a \xHH and \ before anything else, and in 'single' ones, which know \'. The
// words are written over the line. It reports false if a quote is not closed, or is followed
// by something other than a blank.
func words(dst [][]byte, line []byte) ([][]byte, bool) {
	for i := 0; ; {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			return dst, true
		}
		start, end := i, i
		var quote byte
		for ; i < len(line); i++ {
			c := line[i]
			switch {
			case quote == 0 && blank(c):
				goto done
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				if i+1 < len(line) && !blank(line[i+1]) {
					return dst, false
				}
				i++
				quote = 0
				goto done
			case quote == '"' && c == '\\' && i+1 < len(line):
				var used int
				c, used = escaped(line[i+1:])
				i += used
			case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
				c = '\''
				i++
			}
			line[end] = c
			end++
		}
	done:
		if quote != 0 {
			return dst, false
		}
		dst = append(dst, line[start:end:end])
	}
}

// escaped returns the byte that b, which follows a backslash, stands for, and how many bytes of b are
// used.
func escaped(b []byte) (c byte, used int) {
	if b[0] == 'x' && len(b) >= 3 {
		hi, ok1 := digit(b[1])
		lo, ok2 := digit(b[2])
		if ok1 && ok2 {
			return hi<<4 | lo, 3
		}
	}
	switch b[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return b[0], 1
}

func digit(c byte) (byte, bool) {
	switch {
	case c-'0' <= 9:
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func blank(c byte) bool { return c == ' ' || c-'\t' <= '\r'-'\t' || c == 0 }

// equalFold reports whether b is the word, which is in lower case, however it is written.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c-'A' <= 'Z'-'A' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}
