package offenders

import "slices"

// Merge joins the lists that the nodes of a fleet returned for q. Counts and bounds are added,
// including what a node that does not list a key may have counted of it. Of peaks, the largest
// counts. Each node is included once. Of a search, only lists with what was found are left.
func Merge(q Query, nodes ...Report) Report {
	merged := Report{Nodes: []string{}, Lists: []List{}}
	type name struct {
		rule    string
		by      By
		minutes int
	}
	found := make(map[name]*merging)
	var names []name
	for i := range nodes {
		n := &nodes[i]
		if n.At.After(merged.At) {
			merged.At = n.At
		}
		merged.Nodes = append(merged.Nodes, n.Nodes...)
		merged.Missing = append(merged.Missing, n.Missing...)
		merged.LeftOut += n.LeftOut
		merged.LeftOutAtMost += n.LeftOutAtMost
		for j := range n.Lists {
			l := &n.Lists[j]
			of := name{l.Rule, l.By, l.Minutes}
			if found[of] == nil {
				found[of] = &merging{entries: make(map[string]*mergedEntry)}
				names = append(names, of)
			}
			found[of].add(i, l)
		}
	}
	for _, of := range names {
		l := found[of].list(nodes)
		if q.Search != "" && len(l.Entries) == 0 {
			continue // there is nothing in it that was searched for
		}
		l.Rule, l.By, l.Minutes = of.rule, of.by, of.minutes
		l.cut(q.top())
		merged.Lists = append(merged.Lists, l)
	}
	sortLists(merged.Lists)
	return merged
}

// merging collects the lists of nodes that become one.
type merging struct {
	lists   []*List
	of      []int // the node of each list
	entries map[string]*mergedEntry
}

type mergedEntry struct {
	Entry
	listed map[int]struct{} // the nodes that list it
}

func (m *merging) add(node int, l *List) {
	m.lists, m.of = append(m.lists, l), append(m.of, node)
	for i := range l.Entries {
		e := &l.Entries[i]
		text := e.text()
		sum := m.entries[text]
		if sum == nil {
			sum = &mergedEntry{Entry: Entry{Subject: e.Subject, Limit: e.Limit}, listed: make(map[int]struct{})}
			m.entries[text] = sum
		}
		sum.Count += e.Count
		sum.AtLeast += e.AtLeast
		sum.AtMost += e.AtMost
		sum.Used = max(sum.Used, e.Used)
		sum.listed[node] = struct{}{}
	}
}

// list returns the joined list. A node without a list of the kind has counted nothing, unless its
// answer had no room for it.
func (m *merging) list(nodes []Report) List {
	joined := List{Entries: []Entry{}}
	others := make([]int64, len(nodes))
	for i := range nodes {
		others[i] = nodes[i].LeftOutAtMost
		if nodes[i].LeftOut > 0 && !slices.Contains(m.of, i) && m.lists[0].By == Nearest {
			joined.OthersUsed = 1
		}
	}
	for i, l := range m.lists {
		others[m.of[i]] = l.OthersAtMost
		joined.OthersUsed = max(joined.OthersUsed, l.OthersUsed)
		joined.Seconds = max(joined.Seconds, l.Seconds)
		joined.Sampled = max(joined.Sampled, l.Sampled)
	}
	for _, n := range others {
		joined.OthersAtMost += n
	}
	for _, e := range m.entries {
		for node, n := range others {
			if _, listed := e.listed[node]; !listed && e.Used == 0 {
				e.AtMost += n
			}
		}
		joined.Entries = append(joined.Entries, e.Entry)
	}
	sortEntries(joined.Entries)
	return joined
}
