package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
)

// maxID is the longest request id that is accepted from a proxy.
const maxID = 128

// requestID returns the id that a trusted peer gave to the request, or a new one.
func requestID(r *http.Request, trusted bool) string {
	if given := r.Header["X-Request-Id"]; trusted && len(given) == 1 && validID(given[0]) {
		return given[0]
	}
	var raw [16]byte // it has to be unique, and is no secret
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	var text [2 * len(raw)]byte
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

// validID reports whether an id needs no quotes in a log or a shell.
func validID(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=', c == '@':
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxID
}
