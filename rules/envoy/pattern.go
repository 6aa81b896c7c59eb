package envoy

import "strings"

// pattern is a value with stars, each of which stands for any text, even for none: the texts
// between the stars, of which there are two at least.
type pattern []string

// newPattern takes a value apart; nil if it has no star.
func newPattern(value string) pattern {
	if !strings.Contains(value, "*") {
		return nil
	}
	return strings.Split(value, "*")
}

// matches reports whether value has the texts of p in their order, the first at its
// beginning and the last at its end. It takes time linear in value for each text.
func (p pattern) matches(value string) bool {
	first, last := p[0], p[len(p)-1]
	if len(value) < len(first)+len(last) || !strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	value = value[len(first) : len(value)-len(last)]
	for _, text := range p[1 : len(p)-1] {
		i := strings.Index(value, text) // the earliest leaves most for the others
		if i < 0 {
			return false
		}
		value = value[i+len(text):]
	}
	return true
}
