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
	if len(parts) == 1 && len(parts[0]) < MaxKey {
		return "=" + parts[0]
	}
	var room [128]byte
	b := room[:0]
	for _, p := range parts {
		b = strconv.AppendInt(b, int64(len(p)), 10)
		b = append(b, ':')
		b = append(b, p...)
	}
	if len(b) <= MaxKey {
		return string(b)
	}
	sum := sha256.Sum256(b)
	return "#" + hex.EncodeToString(sum[:])
}
