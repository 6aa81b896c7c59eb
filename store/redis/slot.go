package redis

import "strings"

// slotCount is how many slots a Redis Cluster has.
const slotCount = 1 << 14

// slotOfKey returns the slot of a cluster that a key of a Store lives in: the CRC-16 of what stands
// in its braces, by the polynomial 0x1021.
func slotOfKey(key string) uint16 {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if size := strings.IndexByte(key[from+1:], '}'); size > 0 {
			key = key[from+1:][:size]
		}
	}
	return slotOf(key)
}

// slotOf returns the slot of keys that have tag in braces.
func slotOf[T string | []byte](tag T) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^tag[i]]
	}
	return crc % slotCount
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
