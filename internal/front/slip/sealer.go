package slip

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
)

// Prefix is what every slip begins with, so that people and programs know one.
const Prefix = "rs1_"

const (
	saltLen  = 12
	countLen = 4
	nonceLen = 12
	tagLen   = 16
	// maxSealed is longer than any slip.
	maxSealed = 2 << 10
	// maxCount is how many slips are sealed under one salt.
	maxCount = 1<<32 - 1
)

// ErrUnknown is for a text that is no slip of ours: damaged, forged, or sealed with another key.
var ErrUnknown = errors.New("the slip cannot be opened: it is damaged or forged, or was sealed with another key")

// Sealer seals slips and opens them. It may be used by many goroutines at once.
//
// The keys that NewSealer gets seal nothing themselves. Each process derives a key of its own from
// the first and from random bytes, the salt, which every slip carries, and counts nonces: no nonce
// is used twice with the same key, however many slips a fleet writes.
type Sealer struct {
	keys [][]byte // the first seals, all open

	mu    sync.Mutex
	salt  [saltLen]byte // under mu
	aead  cipher.AEAD   // of salt; under mu
	count uint64        // slips sealed with it; under mu
}

// NewSealer returns a Sealer that seals with the first of the keys, and opens what any of them has
// sealed. A key is any text that is hard to guess. Without keys it makes one, which nobody else has.
func NewSealer(keys ...string) *Sealer {
	s := new(Sealer)
	for _, k := range keys {
		s.keys = append(s.keys, []byte(k))
	}
	if len(keys) == 0 {
		s.keys = [][]byte{[]byte(rand.Text())}
	}
	s.renew()
	return s
}

// renew chooses another salt.
func (s *Sealer) renew() {
	_, _ = rand.Read(s.salt[:]) // it never fails
	s.aead, s.count = aeadOf(s.keys[0], s.salt[:]), 0
}

// aeadOf derives the key of a salt.
func aeadOf(key, salt []byte) cipher.AEAD {
	derived, err := hkdf.Key(sha256.New, key, salt, "tidegate refusal slip", 32)
	if err != nil { // only for lengths that are not those here
		panic("slip: " + err.Error())
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic("slip: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("slip: " + err.Error())
	}
	return aead
}

// scratch is what sealing a slip needs for a moment. What is passed to an AEAD is on the heap, and a
// flood makes many slips.
type scratch struct {
	nonce  [nonceLen]byte // all but the count stay zero
	plain  [384]byte
	sealed [512]byte
	text   [768]byte
}

var (
	scratches = sync.Pool{New: func() any { return new(scratch) }}
	prefix    = []byte(Prefix)
)

// Seal returns the text of a slip: letters, digits, "-" and "_".
func (s *Sealer) Seal(slip *Slip) string {
	room := scratches.Get().(*scratch)
	defer scratches.Put(room)
	s.mu.Lock()
	if s.count == maxCount {
		s.renew()
	}
	s.count++
	count, aead := uint32(s.count), s.aead
	b := append(room.sealed[:0], s.salt[:]...)
	s.mu.Unlock()
	b = binary.BigEndian.AppendUint32(b, count)
	binary.BigEndian.PutUint32(room.nonce[nonceLen-countLen:], count)
	b = aead.Seal(b, room.nonce[:], slip.appendTo(room.plain[:0]), prefix)
	return string(base64.RawURLEncoding.AppendEncode(append(room.text[:0], Prefix...), b))
}

// Open returns what a slip says. The error is [ErrUnknown] if no key opens it, and another one if it
// is of another version.
func (s *Sealer) Open(text string) (Slip, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), Prefix)
	if !ok || len(text) > maxSealed {
		return Slip{}, ErrUnknown
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < saltLen+countLen+tagLen {
		return Slip{}, ErrUnknown
	}
	var nonce [nonceLen]byte
	copy(nonce[nonceLen-countLen:], b[saltLen:])
	for _, key := range s.keys {
		if plain, err := aeadOf(key, b[:saltLen]).Open(nil, nonce[:], b[saltLen+countLen:], []byte(Prefix)); err == nil {
			return read(plain)
		}
	}
	return Slip{}, ErrUnknown
}
