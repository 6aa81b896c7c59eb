package gateway

import (
	"net/textproto"
	"strings"
)

// isHopByHop reports whether a header is of one connection, and so is not passed on, in
// either direction. Those that Connection names are not passed on either.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
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
