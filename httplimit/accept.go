package httplimit

import (
	"strconv"
	"strings"
)

// prefersText reports whether a client would rather read text than JSON. Those
// that have no preference, or do not say, get JSON.
func prefersText(accept []string) bool {
	var json, text preference
	for _, line := range accept {
		for entry := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(entry, ";")
			q := quality(params)
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "application/problem+json", "application/json":
				json.note(3, q)
			case "application/*":
				json.note(2, q)
			case "text/plain", "text/html":
				text.note(3, q)
			case "text/*":
				text.note(2, q)
			case "*/*":
				json.note(1, q)
				text.note(1, q)
			}
		}
	}
	return text.q > json.q
}

// preference is the quality given by the most specific range so far.
type preference struct {
	rank int
	q    float64
}

func (p *preference) note(rank int, q float64) {
	if rank > p.rank || rank == p.rank && q > p.q {
		*p = preference{rank, q}
	}
}

// quality reads the q of a media range; 1 when it has none.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}
