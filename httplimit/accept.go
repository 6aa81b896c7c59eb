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
				json.say(3, q)
			case "application/*":
				json.say(2, q)
			case "text/plain", "text/html":
				text.say(3, q)
			case "text/*":
				text.say(2, q)
			case "*/*":
				json.say(1, q)
				text.say(1, q)
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

func (p *preference) say(rank int, q float64) {
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
