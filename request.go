package tidegate

import "unsafe"

// Request is what is asked about: who and what by attribute, and a cost.
type Request struct {
	// Method, Host and Path, where the front end has them.
	Method, Host, Path string
	// RawPath is the path as it was sent, where that is not Path: a slash that
	// was escaped may divide it or not, and rules hold for both readings.
	RawPath string
	// Values gives the other attributes by name, such as "ip" or "header
	// X-Api-Key"; nil has none.
	Values Values
	// Cost in events; 0 means 1.
	Cost int64
	// Estimate: Cost is what the request will cost at most, or so; the true cost is told
	// at its end. See [Gate.Issue] and [Visit.End].
	Estimate bool
	// Unattended: the front end can neither hold the request nor see its answer. It is
	// refused where it would have to wait, with the wait as RetryAfter, and limits that
	// give way while there is room do not.
	Unattended bool
	// Looking: somebody wants to know what the request is held to, and nothing is charged. A
	// Matcher that counts requests does not count it. The Gate sets it for its peeks.
	Looking bool

	keys  []byte   // what Key has made
	owner *Request // of keys: a copy of a request must not write into them
}

// Values looks up an attribute of a request.
type Values interface {
	Value(name string) (value string, ok bool)
}

// Value is shorthand for r.Values.Value that survives a nil Values.
func (r *Request) Value(name string) (string, bool) {
	if r.Values == nil {
		return "", false
	}
	return r.Values.Value(name)
}

// Key is [Key] in memory of the request, for a Matcher: the string is valid until
// Reset. A request that is used again and again makes its keys without garbage.
func (r *Request) Key(parts ...string) string {
	if r.owner != r || r.keys == nil {
		r.keys, r.owner = make([]byte, 0, 4*MaxKey), r
	}
	start := len(r.keys)
	// What an append moves elsewhere, the keys made before still hold.
	r.keys = AppendKey(r.keys, parts...)
	made := r.keys[start:]
	return unsafe.String(unsafe.SliceData(made), len(made))
}

// maxRequestKeys bounds the memory that a request is kept with: a part may be as
// long as its client likes, before it is hashed.
const maxRequestKeys = 4 << 10

// Reset empties the request, to be used for another one. Keys that it made are
// no longer valid: whoever kept one has copied it.
func (r *Request) Reset() {
	keys := r.keys[:0]
	if r.owner != r || cap(keys) > maxRequestKeys {
		keys = nil
	}
	*r = Request{keys: keys, owner: r}
}
