package tidegate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// MaxKey is the length beyond which [Key] replaces a key by its hash.
const MaxKey = 64

// Key joins parts such that different parts never make the same key: "a","bc"
// and "ab","c" differ. Each part is preceded by its length. A key longer than
// MaxKey becomes a SHA-256 in hex, told apart from the others by its first byte.
func Key(parts ...string) string {
	var room [128]byte
	return string(AppendKey(room[:0], parts...))
}

// AppendKey appends the Key of parts to b.
func AppendKey(b []byte, parts ...string) []byte {
	if len(parts) == 1 && len(parts[0]) < MaxKey {
		b = append(b, '=')
		return append(b, parts[0]...)
	}
	start := len(b)
	for _, p := range parts {
		b = strconv.AppendInt(b, int64(len(p)), 10)
		b = append(b, ':')
		b = append(b, p...)
	}
	if len(b)-start <= MaxKey {
		return b
	}
	sum := sha256.Sum256(b[start:])
	b = append(b[:start], '#')
	return hex.AppendEncode(b, sum[:])
}
