package rules

// literals counts how many of the rules or branches of one list require each value of each
// identity. Each is then indexed by its rarest value: of `role: member, user: acme`, by the user.
type literals map[literal]int

type literal struct {
	id    *identity
	value string
}

func (ls literals) add(cs conditions) {
	for i := range cs {
		for _, v := range cs[i].values() {
			ls[literal{cs[i].id, v}]++
		}
	}
}

// best returns the condition with the rarest value; nil if no condition consists of literals alone.
func (ls literals) best(cs conditions) *condition {
	var best *condition
	fewest := 0
	for i := range cs {
		crowd := 0
		for _, v := range cs[i].values() {
			crowd = max(crowd, ls[literal{cs[i].id, v}])
		}
		if crowd > 0 && (best == nil || crowd < fewest) {
			best, fewest = &cs[i], crowd
		}
	}
	return best
}
