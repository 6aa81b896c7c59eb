package route

import "fmt"

// Tree holds patterns. Make it with [New], fill it with [Tree.Add], and then ask
// it with [Tree.Match], which any number of goroutines may do at once.
type Tree struct {
	// IgnoreCase makes patterns match paths in any case. It is set before the first
	// pattern is added.
	IgnoreCase bool

	anyHost node
	hosts   map[string]*node // by hostKey
}

// node is where the paths of patterns lead, segment by segment.
type node struct {
	literals table[*node]
	wildcard *node
	here     *leaf // patterns for this path alone
	below    *leaf // patterns for this path and all below it
}

// leaf holds the patterns that end at one place.
type leaf struct {
	all     []entry // of no method
	methods table[[]entry]
}

// entry is a pattern that was added.
type entry struct {
	id    int
	names []string // of its segments, "" for a literal
	rest  string   // the name of {name...}, or ""
}

// New returns a tree without patterns.
func New() *Tree { return &Tree{hosts: make(map[string]*node)} }

// Add adds a pattern under a number; several may have the same. It panics if
// [Split] would not let the pattern through.
func (t *Tree) Add(p Pattern, id int) {
	path, err := p.check()
	if err != nil {
		panic(fmt.Sprintf("route: add %+v: %v", p, err))
	}
	n := t.root(p.Host)
	names := make([]string, len(path.segments))
	for i, s := range path.segments {
		if t.IgnoreCase {
			s.literal = Fold(s.literal)
		}
		n, names[i] = n.child(s), s.name
	}
	end := &n.here
	if path.below {
		end = &n.below
	}
	if *end == nil {
		*end = new(leaf)
	}
	(*end).add(p.Method, entry{id: id, names: names, rest: path.rest})
}

func (t *Tree) root(host string) *node {
	if host == "" {
		return &t.anyHost
	}
	key := string(hostKey(nil, host))
	n := t.hosts[key]
	if n == nil {
		n = new(node)
		t.hosts[key] = n
	}
	return n
}

func (n *node) child(s segment) *node {
	if s.name != "" {
		if n.wildcard == nil {
			n.wildcard = new(node)
		}
		return n.wildcard
	}
	c := n.literals.get(s.literal)
	if c == nil {
		c = new(node)
		n.literals.put(s.literal, c)
	}
	return c
}

func (l *leaf) add(method string, e entry) {
	if method == "" {
		l.all = append(l.all, e)
		return
	}
	l.methods.put(method, append(l.methods.get(method), e))
}
