package rules

// globMatch reports whether the whole of s fits pattern, in which * stands for
// any run of bytes, also none. It takes at most len(pattern)·len(s) steps.
func globMatch(pattern, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0 // the position after the last *, and in s the end of what it stands for
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func anyGlob(patterns []string, s string) bool {
	for _, p := range patterns {
		if globMatch(p, s) {
			return true
		}
	}
	return false
}
