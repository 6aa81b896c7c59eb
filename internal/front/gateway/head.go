package gateway

import (
	"iter"
	"net/http"
	"slices"
)

// head is the header of a request as upstreams get it: that of the client without what is
// not passed on, and what the gateway adds. It is the one place that decides about that.
//
// It is not a map, since most requests are written straight from it; see header.
type head struct {
	client  http.Header     // is not changed
	listed  map[string]bool // headers of client that its Connection lists
	trusted bool            // the client is a trusted proxy: its forwarding headers are kept
	asIs    bool            // all of client is passed on, and nothing is added

	// What is added, in place of what the client sent under these names.
	names, values [mostAdded]string
	n             int
}

// mostAdded is five headers about the client, one for the encoding, and three that belong to
// the connection.
const mostAdded = 9

// newHead returns the head of in, with the headers that describe the client.
func newHead(in *http.Request, x *exchange) head {
	h := head{client: in.Header, listed: listedHeaders(in.Header), trusted: x.trusted}
	h.addForwarded(in, x)
	return h
}

// add adds a header. Its name is canonical.
func (h *head) add(name, value string) {
	h.names[h.n], h.values[h.n] = name, value
	h.n++
}

// addHop adds the headers for the connection to the upstream: what the client offered, if it
// can be offered there.
func (h *head) addHop() {
	if hasToken(h.client["Te"], "trailers") {
		h.add("Te", "trailers")
	}
	if protocol := upgradeOf(h.client); protocol != "" {
		h.add("Connection", "Upgrade")
		h.add("Upgrade", protocol)
	}
}

// upgradeOf returns the protocol that a header offers, or accepts, to switch to; "" if none.
func upgradeOf(h http.Header) string {
	offers := h["Upgrade"]
	if len(offers) == 0 || !hasToken(h["Connection"], "Upgrade") {
		return ""
	}
	return offers[0]
}

// passes reports whether the client's header of that name is passed on.
func (h *head) passes(name string) bool {
	if h.asIs {
		return true
	}
	if name == "Host" || isHopByHop(name) || h.listed[name] { // an HTTP/2 client may send a Host beside :authority
		return false
	}
	if isForwardingAlias(name) && !(h.trusted && isForwardingHeader(name)) {
		return false
	}
	for _, added := range h.names[:h.n] {
		if added == name {
			return false
		}
	}
	return true
}

// all returns the headers, in no particular order. The values are not kept.
func (h *head) all() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for name, values := range h.client {
			if h.passes(name) && !yield(name, values) {
				return
			}
		}
		for i := range h.n {
			if !yield(h.names[i], h.values[i:i+1:i+1]) {
				return
			}
		}
	}
}

// header returns the headers as a map, which is the caller's.
func (h *head) header() http.Header {
	header := make(http.Header, len(h.client)+h.n)
	for name, values := range h.all() {
		header[name] = slices.Clone(values)
	}
	return header
}
