package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainShadowedStar(p *pass) {
	p.levels(func(_ *domainfile.Domain, _, beside []*domainfile.Descriptor) {
		before := make(map[string][]*domainfile.Descriptor) // patterns by key
		for _, d := range beside {
			if !d.HasStar() {
				continue
			}
			for _, other := range before[d.Key.Text] {
				p.step(1 + len(d.Value.Text)/64)
				if covers(other.Value.Text, d.Value.Text) {
					p.warn(d.Value.Pos, entry(d)+" never matches: "+entry(other)+" comes before it and matches everything that it does",
						"put it before the other one: the first pattern that matches is taken")
					break
				}
			}
			before[d.Key.Text] = append(before[d.Key.Text], d)
		}
	})
}

// covers reports whether the pattern wide matches everything that narrow matches. A star of narrow
// can be any text, so only a star of wide can match it: narrow, with its stars replaced by a
// character that is in neither, has to match wide.
func covers(wide, narrow string) bool {
	const any = "\x00"
	if strings.Contains(wide+narrow, any) {
		return false
	}
	value := strings.ReplaceAll(narrow, "*", any)
	parts := strings.Split(wide, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(value) < len(first)+len(last) || !strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	value = value[len(first) : len(value)-len(last)]
	for _, text := range parts[1 : len(parts)-1] {
		i := strings.Index(value, text)
		if i < 0 {
			return false
		}
		value = value[i+len(text):]
	}
	return true
}
