package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
)

// Keys is how keys are shown that may be secrets, such as those of an API.
type Keys uint8

const (
	// KeysHashed shows addresses as they are, and of all else a hash.
	KeysHashed Keys = iota
	// KeysPlain shows them as they are.
	KeysPlain
	// KeysOff shows none.
	KeysOff
)

// hashBytes are enough to tell the keys of a site apart.
const hashBytes = 8

// show is key as it may be shown. It is a copy.
func (k Keys) show(key string, l *tidegate.Limit) string {
	switch {
	case key == "" || k == KeysOff:
		return ""
	case k == KeysPlain:
		return strings.Clone(key)
	}
	parts := []string{key}
	if strings.Contains(l.Scope, ",") {
		parts = unframe(key)
	}
	shown := make([]string, len(parts))
	for i, p := range parts {
		shown[i] = hashed(p)
	}
	return strings.Join(shown, ",")
}

// hashed is the beginning of a SHA-256 in hex, unless part is an address.
func hashed(part string) string {
	if isAddress(part) {
		return strings.Clone(part)
	}
	sum := sha256.Sum256([]byte(part))
	return hex.EncodeToString(sum[:hashBytes])
}

// isAddress: of a client, of its network, or the word for having none.
func isAddress(s string) bool {
	if s == "@" {
		return true
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// unframe returns the parts of a key that [tidegate.Key] made, or key itself if it was
// too long to have them.
func unframe(key string) (parts []string) {
	for rest := key; rest != ""; {
		size, after, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 0 || n > len(after) {
			return []string{key}
		}
		parts, rest = append(parts, after[:n]), after[n:]
	}
	return parts
}
