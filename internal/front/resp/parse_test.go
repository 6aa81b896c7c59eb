package resp

import (
	"regexp"
	"strconv"
	"testing"
)

var (
	wholeLength = regexp.MustCompile(`^(-?[0-9]{1,10})\r\n`)
	startLength = regexp.MustCompile(`^-?[0-9]{0,10}$|^-?[0-9]{1,10}\r$`)
)

// A length is read as its grammar says, whatever it is made of and wherever it is cut off.
func TestLength(t *testing.T) {
	f := func(in string) {
		wantN, wantSize, fails := 0, 0, false
		if m := wholeLength.FindStringSubmatch(in); m != nil {
			wantN, _ = strconv.Atoi(m[1])
			wantSize = len(m[0])
		} else {
			fails = !startLength.MatchString(in)
		}
		n, size, err := length([]byte(in), "wrong")
		if (err != nil) != fails || size != wantSize || size > 0 && n != wantN {
			t.Errorf("%q: %d in %d bytes, %v; want %d in %d", in, n, size, err, wantN, wantSize)
		}
	}
	var all func(in string, more int)
	all = func(in string, more int) {
		f(in)
		for _, c := range "-0159\r\n$" {
			if more > 0 {
				all(in+string(c), more-1)
			}
		}
	}
	all("", 5)
	for _, in := range []string{"1234567890\r\n", "-1234567890\r\n", "12345678901\r\n", "1234567890", "12345678901", "0000000007\r\n"} {
		f(in)
	}
}
