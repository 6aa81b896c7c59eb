package route

// fewest is how many keys a map needs to be faster than looking at each; see
// BenchmarkTable.
const fewest = 6

// table is a map that is fast for few keys as well.
type table[V any] struct {
	few     []pair[V]
	many    map[string]V // instead of few
	longest int          // of the keys of many: a longer one need not be hashed
}

type pair[V any] struct {
	key   string
	value V
}

// get returns the zero value for a key that is not there.
func (t *table[V]) get(key string) V {
	var none V
	if t.many != nil {
		if len(key) > t.longest {
			return none
		}
		return t.many[key]
	}
	for i := range t.few {
		if t.few[i].key == key {
			return t.few[i].value
		}
	}
	return none
}

func (t *table[V]) put(key string, value V) {
	t.longest = max(t.longest, len(key))
	if t.many != nil {
		t.many[key] = value
		return
	}
	for i := range t.few {
		if t.few[i].key == key {
			t.few[i].value = value
			return
		}
	}
	t.few = append(t.few, pair[V]{key, value})
	if len(t.few) < fewest {
		return
	}
	t.many = make(map[string]V, len(t.few))
	for _, p := range t.few {
		t.many[p.key] = p.value
	}
	t.few = nil
}
