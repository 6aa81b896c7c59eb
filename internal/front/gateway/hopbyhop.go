package gateway

import (
	"iter"
	"net/http"
	"net/textproto"
	"strings"
)

// isHopByHop reports whether a header belongs to one connection, and is not forwarded in either
// direction. Headers that Connection lists are not forwarded either.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// connectionNames returns the names that the Connection header of h lists, canonical. Most are
// options such as close, and no headers.
func connectionNames(h http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range h["Connection"] {
			if strings.EqualFold(list, "keep-alive") || strings.EqualFold(list, "close") { // which most are
				continue
			}
			for word := range strings.SplitSeq(list, ",") {
				if !yield(http.CanonicalHeaderKey(textproto.TrimString(word))) {
					return
				}
			}
		}
	}
}

// listedHeaders returns the headers of h that its Connection lists; nil if there are none. A
// list may be as long as a whole head, so it is read once, and not for every header.
func listedHeaders(h http.Header) map[string]bool {
	var listed map[string]bool
	for name := range connectionNames(h) {
		if _, ok := h[name]; !ok {
			continue
		}
		if listed == nil {
			listed = make(map[string]bool)
		}
		listed[name] = true
	}
	return listed
}

// hasToken reports whether one of the comma-separated lists has the token, in any case of
// letters.
func hasToken(lists []string, token string) bool {
	for _, list := range lists {
		for word := range strings.SplitSeq(list, ",") {
			if word = textproto.TrimString(word); len(word) == len(token) && strings.EqualFold(word, token) {
				return true
			}
		}
	}
	return false
}
