package question

import "slices"

// AddEntry adds an entry of one of Envoy's descriptors. It is an identity with the name of its key; if
// Envoy uses that key for a part of the request, it also describes that part.
func (q *Question) AddEntry(key, value string) {
	switch key {
	case "method":
		q.Method = value
	case "path":
		q.Target = value
	case "host":
		q.Host = value
	case "remote_address":
		q.IP = value
	}
	q.As = append(q.As, Pair{Name: key, Value: value})
}

// AddDomain adds the domain of a descriptor as an identity, unless an entry has that name.
func (q *Question) AddDomain(domain string) {
	const name = "domain"
	if !slices.ContainsFunc(q.As, func(p Pair) bool { return p.Name == name }) {
		q.As = append(q.As, Pair{Name: name, Value: domain})
	}
}
