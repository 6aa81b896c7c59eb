package accesslog

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
)

// Keys says how the access log shows keys, which may be secrets such as API keys.
type Keys uint8

const (
	// Hashed shows addresses as they are, and hashes of everything else.
	Hashed Keys = iota
	// Plain shows them as they are.
	Plain
	// Off omits them.
	Off
)

// hashBytes is enough to distinguish the keys of a site.
const hashBytes = 8

// show returns a copy of key in the form that may be shown.
func (k Keys) show(key string, l *tidegate.Limit) string {
	switch {
	case key == "" || k == Off:
		return ""
	case k == Plain:
		return strings.Clone(key)
	}
	parts := []string{key}
	if strings.Contains(l.Scope, ",") {
		parts = splitKey(key)
	}
	shown := make([]string, len(parts))
	for i, p := range parts {
		shown[i] = hashed(p)
	}
	return strings.Join(shown, ",")
}

// hashed returns the beginning of the SHA-256 in hex, or part itself if it is an address.
func hashed(part string) string {
	if IsAddress(part) {
		return strings.Clone(part)
	}
	sum := sha256.Sum256([]byte(part))
	return hex.EncodeToString(sum[:hashBytes])
}

// IsAddress reports whether s is an address, a network, or the mark of a client without one.
func IsAddress(s string) bool {
	if s == "@" {
		return true
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// splitKey returns the parts of a key made by [tidegate.Key]; or key itself, if it was too long and
// is a hash.
func splitKey(key string) (parts []string) {
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
