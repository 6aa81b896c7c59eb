package memory

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// hashKey is a keyed hash. Its 128-bit key can be kept over a restart, which that of
// maphash cannot. It folds 64x64-bit products of the input xored with secrets; without
// the key nobody can find keys that collide.
type hashKey struct {
	key    [2]uint64
	secret [5]uint64
}

// keyHash identifies a key within a table: tag and extra together are 76 bits.
type keyHash struct {
	tag   uint64 // never 0
	extra uint64 // 12 bits, the upper ones of the word
}

func newHashKey() hashKey {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return expandHashKey(binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:]))
}

// expandHashKey derives the secrets by splitmix64 steps from both halves.
func expandHashKey(k0, k1 uint64) hashKey {
	h := hashKey{key: [2]uint64{k0, k1}}
	x := k0
	for i := range h.secret {
		x += 0x9e3779b97f4a7c15
		z := x ^ bits.RotateLeft64(k1, 13*i)
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		h.secret[i] = z ^ z>>31 | 1
	}
	return h
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// sum hashes s for the table of that salt.
func (h *hashKey) sum(s string, salt uint64) keyHash {
	seed := h.secret[0] ^ salt
	p := unsafe.Pointer(unsafe.StringData(s))
	n := len(s)
	var a, b uint64
	switch {
	case n > 16:
		for n > 16 {
			seed = fold(load64(p)^h.secret[1], load64(unsafe.Add(p, 8))^seed)
			p = unsafe.Add(p, 16)
			n -= 16
		}
		a, b = load64(unsafe.Add(p, n-16)), load64(unsafe.Add(p, n-8))
	case n >= 8:
		a, b = load64(p), load64(unsafe.Add(p, n-8))
	case n >= 4:
		a, b = load32(p), load32(unsafe.Add(p, n-4))
	case n > 0:
		a = uint64(*(*byte)(p))<<16 | uint64(*(*byte)(unsafe.Add(p, n/2)))<<8 | uint64(*(*byte)(unsafe.Add(p, n-1)))
	}
	hi, lo := bits.Mul64(a^h.secret[2], b^seed)
	tag := fold(lo^h.secret[3]^uint64(len(s)), hi^h.secret[1])
	extra := fold(hi^h.secret[4], lo^h.secret[2]) // the other half of the product
	if tag == 0 {
		tag = 1
	}
	return keyHash{tag: tag, extra: extra &^ slowMask}
}

func load64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }
func load32(p unsafe.Pointer) uint64 { return uint64(binary.LittleEndian.Uint32((*[4]byte)(p)[:])) }
