package config

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// span is the range of a number: from least to most, and 0 if orZero.
type span[T int | int64] struct {
	least, most T
	orZero      bool
}

func (s span[T]) has(v T) bool { return v >= s.least && v <= s.most || v == 0 && s.orZero }

// outside returns the mistake of a value that is not in s.
func (s span[T]) outside(text string, write func(T) string) mistake {
	or := ""
	if s.orZero {
		or = ", or 0"
	}
	return advised(fmt.Sprintf("is %s, and must be from %s to %s%s", quote(text), write(s.least), write(s.most), or), "")
}

// count returns the codec of a whole number.
func count(s span[int]) codec[int] {
	return codec[int]{
		read: func(w rawValue) (int, mistake) {
			v, err := strconv.Atoi(w.text)
			if err != nil || strconv.Itoa(v) != w.text {
				return 0, wrong("is not a whole number: "+quote(w.text), plainDigits(w.text))
			}
			if !s.has(v) {
				return 0, s.outside(w.text, strconv.Itoa)
			}
			return v, mistake{}
		},
		write: strconv.Itoa,
	}
}

// plainDigits returns how to write a number such as 007, 1_000 or 1,000; "" for other texts.
func plainDigits(text string) string {
	plain := strings.NewReplacer("_", "", ",", "", " ", "", "'", "").Replace(text)
	v, err := strconv.ParseUint(plain, 10, 63)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(v, 10)
}

// unit is a unit of bytes. KB are a thousand and KiB 1024, as the standards have it.
type unit struct {
	name  string
	bytes int64
}

// units are in the order in which write tries them.
var units = []unit{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"kB", 1e3},
	{"B", 1},
}

// size returns the codec of a number of bytes, as in 64KB or 1MiB.
func size(s span[int64]) codec[int64] {
	return codec[int64]{
		read: func(w rawValue) (int64, mistake) {
			digits := strings.TrimRight(w.text, "TGMKkiB")
			n, err := strconv.ParseUint(digits, 10, 63)
			scale, ok := bytesOf(w.text[len(digits):])
			if err != nil || !ok {
				return 0, notSize(w.text)
			}
			high, v := bits.Mul64(n, uint64(scale))
			if high > 0 || v > 1<<63-1 || !s.has(int64(v)) {
				return 0, s.outside(w.text, writeSize)
			}
			return int64(v), mistake{}
		},
		write: writeSize,
	}
}

// bytesOf returns how many bytes a unit has; without a unit, 1.
func bytesOf(name string) (int64, bool) {
	for _, u := range units {
		if u.name == name {
			return u.bytes, true
		}
	}
	return 1, name == ""
}

// writeSize returns v in the first of units that divides it, as 64KiB; otherwise in bytes.
func writeSize(v int64) string {
	for _, u := range units {
		if v > 0 && v%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(v/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(v, 10)
}

// notSize returns the mistake of a text that is not a size. It knows what people write instead: 64K,
// 64kb, 64 KB, 64 Kbytes, -1.
func notSize(text string) mistake {
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	name := strings.ToLower(strings.TrimSpace(text[len(digits):]))
	name, _, _ = strings.Cut(name, "byte")
	message := "is not a valid size: " + quote(text)
	switch {
	case digits == "":
		return advised(message, "")
	case len(name) == 1 && strings.Contains("kmgt", name):
		prefix := strings.ToUpper(name)
		return advised(message, fmt.Sprintf("write %s for 1024s, %s for thousands", quote(digits+prefix+"iB"), quote(digits+prefix+"B")))
	}
	for _, u := range units {
		if name == strings.ToLower(u.name) {
			return wrong(message, digits+u.name)
		}
	}
	return advised(message, "the units are B, KB, MB, GB, TB of 1000s, and KiB, MiB, GiB, TiB of 1024s")
}
