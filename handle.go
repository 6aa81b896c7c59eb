package tidegate

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
)

// Handle is a name that nobody can guess: 128 random bits. Zero is no name.
type Handle [2]uint64

// NewHandle returns a random name, which is not zero.
func NewHandle() Handle {
	for {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		h := Handle{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
		if h != (Handle{}) {
			return h
		}
	}
}

// Copy returns the handle of copy i of a request for several.
func (h Handle) Copy(i int64) Handle { return Handle{h[0], h[1] + uint64(i)} }

// IsZero reports whether h names nothing.
func (h Handle) IsZero() bool { return h == Handle{} }

// String writes h in hexadecimal.
func (h Handle) String() string { return fmt.Sprintf("%016x%016x", h[0], h[1]) }

// receiptText is what the text of a receipt begins with. What follows is the origin, the
// place, the instance and the handle, big-endian and in base64.
const receiptText = "tr1_"

const receiptBytes = 1 + 2 + 8 + 16

var (
	receiptCode = base64.RawURLEncoding.Strict()
	errGarbled  = errors.New("tidegate: the receipt is garbled")
)

// MarshalText implements [encoding.TextMarshaler]. The text is 40 letters, digits, "-" and
// "_"; of a Receipt without a Handle, which names nothing, it is empty.
func (r Receipt) MarshalText() ([]byte, error) {
	if r.Handle.IsZero() {
		return []byte{}, nil
	}
	b := make([]byte, 0, receiptBytes)
	b = append(b, byte(r.Origin))
	b = binary.BigEndian.AppendUint16(b, r.Place)
	b = binary.BigEndian.AppendUint64(b, r.Instance)
	b = binary.BigEndian.AppendUint64(b, r.Handle[0])
	b = binary.BigEndian.AppendUint64(b, r.Handle[1])
	return receiptCode.AppendEncode([]byte(receiptText), b), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. What is not in the text is zero
// afterwards. It returns an error, and leaves r alone, for what MarshalText never wrote.
func (r *Receipt) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*r = Receipt{}
		return nil
	}
	if len(text) < len(receiptText) || string(text[:len(receiptText)]) != receiptText {
		return fmt.Errorf("tidegate: the text is not a receipt that this version knows: it does not begin with %q", receiptText)
	}
	code := text[len(receiptText):]
	var b [receiptBytes]byte
	if len(code) != receiptCode.EncodedLen(receiptBytes) {
		return fmt.Errorf("tidegate: a receipt of %d characters; want %d", len(text), len(receiptText)+receiptCode.EncodedLen(receiptBytes))
	}
	if n, err := receiptCode.Decode(b[:], code); err != nil || n != receiptBytes { // it skips line ends
		return errGarbled
	}
	got := Receipt{
		Origin: Origin(b[0]), Place: binary.BigEndian.Uint16(b[1:]), Instance: binary.BigEndian.Uint64(b[3:]),
		Handle: Handle{binary.BigEndian.Uint64(b[11:]), binary.BigEndian.Uint64(b[19:])},
	}
	if got.Handle.IsZero() || int(got.Origin) >= len(originNames) {
		return errGarbled
	}
	*r = got
	return nil
}
