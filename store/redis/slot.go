package redis

import "strings"

// slots is how many parts the keys of a cluster are divided into.
const slots = 1 << 14

// slotOf is the slot of a cluster that a key of a Store lives in: the CRC-16 of what stands
// in its braces, by the polynomial 0x1021.
func slotOf(key string) uint16 {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if size := strings.IndexByte(key[from+1:], '}'); size > 0 {
			key = key[from+1:][:size]
		}
	}
	return slotOfTag(key)
}

// slotOfTag is the slot of keys that have tag in braces.
func slotOfTag[T string | []byte](tag T) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^tag[i]]
	}
	return crc % slots
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[i] = crc
	}
	return table
}()
