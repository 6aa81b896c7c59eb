package node

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// hashKey is the key of a hash, SipHash-1-3, that nobody else can predict but a successor can
// compute as well. The seeds of hash/maphash cannot be handed over.
type hashKey struct{ A, B uint64 }

func newHashKey() hashKey {
	words := randomWords()
	return hashKey{words[0], words[1]}
}

// randomWords returns 128 random bits.
func randomWords() [2]uint64 {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// string returns the hash of s.
func (k hashKey) string(s string) uint64 {
	v0, v1, v2, v3 := k.A^0x736f6d6570736575, k.B^0x646f72616e646f6d, k.A^0x6c7967656e657261, k.B^0x7465646279746573
	mixIn := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	last := uint64(len(s)) << 56
	for ; len(s) >= 8; s = s[8:] {
		m := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		v3 ^= m
		mixIn()
		v0 ^= m
	}
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	v3 ^= last
	mixIn()
	v0 ^= last
	v2 ^= 0xff
	mixIn()
	mixIn()
	mixIn()
	return v0 ^ v1 ^ v2 ^ v3
}
