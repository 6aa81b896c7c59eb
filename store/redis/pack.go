package redis

import (
	"encoding/binary"
	"fmt"
	"math"
)

// What scripts are told and what they answer is packed as Lua's struct has it: bytes,
// and numbers as little-endian doubles, all of them whole and below 2^53. It is
// cheaper than decimals on both sides, and nothing is rounded.

type packer []byte

func (p *packer) byte(n byte)      { *p = append(*p, n) }
func (p *packer) uint16(n uint16)  { *p = binary.LittleEndian.AppendUint16(*p, n) }
func (p *packer) number(n float64) { *p = binary.LittleEndian.AppendUint64(*p, math.Float64bits(n)) }
func (p *packer) int(n int64)      { p.number(float64(n)) }
func (p *packer) text(s string)    { *p = append(*p, s...) }

// ticks are two numbers: µs, and the ticks beyond them.
func (p *packer) ticks(t int64) {
	p.int(t / 1024)
	p.uint16(uint16(t % 1024))
}

// reply is the numbers that a script answered.
type reply []int64

func parseReply(text string) (reply, error) {
	if len(text)%8 != 0 || len(text) < 3*8 {
		return nil, fmt.Errorf("an answer of %d bytes: the server runs scripts in its own way", len(text))
	}
	r := make(reply, len(text)/8)
	for i := range r {
		var word uint64
		for j := range 8 {
			word |= uint64(text[8*i+j]) << (8 * j)
		}
		r[i] = int64(math.Float64frombits(word))
	}
	return r, nil
}

// missed says that calendar bounds did not reach the instant us of Redis' time now.
func (r reply) missed() (now, us int64, ok bool) { return r[1], r[2], r[0] < 0 }
