package tidegate

import "unsafe"

// Request describes a request by its attributes (who asks, and for what) and its cost.
type Request struct {
	// Method, Host and Path, where the front end has them.
	Method, Host, Path string
	// RawPath is the path as it was sent, if that differs from Path: servers differ in whether
	// an escaped slash divides the path, so rules hold for both readings.
	RawPath string
	// Values has the other attributes by name, such as "ip" or "header
	// X-Api-Key"; nil means none.
	Values Values
	// Cost in events; 0 means 1.
	Cost int64
	// Estimate: Cost is an estimate, usually of the most that the request will cost; the true
	// cost replaces it at the end. See [Gate.Issue] and [Visit.End].
	Estimate bool
	// Unattended: the front end can neither hold the request nor see its answer. It is
	// refused where it would have to wait, with the wait as RetryAfter, and limits that
	// give way while there is room do not.
	Unattended bool
	// Looking: the request is only matched, or peeked at, and nothing is charged. A Matcher that
	// counts requests must not count it. The Gate sets it for its peeks.
	Looking bool

	keys  []byte   // what Key has made
	owner *Request // of keys: a copy of a request must not write into them
}

// Values looks up an attribute of a request.
type Values interface {
	Value(name string) (value string, ok bool)
}

// Value returns r.Values.Value(name), or false if Values is nil.
func (r *Request) Value(name string) (string, bool) {
	if r.Values == nil {
		return "", false
	}
	return r.Values.Value(name)
}

// Key is [Key] in memory of the request, for a Matcher: the string is valid until
// Reset. A request that is reused makes its keys without allocating.
func (r *Request) Key(parts ...string) string {
	if r.owner != r || r.keys == nil {
		r.keys, r.owner = make([]byte, 0, 4*MaxKey), r
	}
	start := len(r.keys)
	// If this moves r.keys to new memory, the keys made before keep the old one.
	r.keys = AppendKey(r.keys, parts...)
	made := r.keys[start:]
	return unsafe.String(unsafe.SliceData(made), len(made))
}

// maxRequestKeys bounds the memory that a request keeps for its keys after Reset: before it
// is hashed, a part may be as long as a client likes.
const maxRequestKeys = 4 << 10

// Reset empties the request, so that it can be reused. Keys that it made are no longer
// valid: copy those that have to last.
func (r *Request) Reset() {
	keys := r.keys[:0]
	if r.owner != r || cap(keys) > maxRequestKeys {
		keys = nil
	}
	*r = Request{keys: keys, owner: r}
}
