package strict

import (
	"strings"
	"testing"
)

func TestValidHost(t *testing.T) {
	for _, host := range []string{"a", "example.com", "EXAMPLE.com.", "a_b:80", "127.0.0.1:65535", "[::1]", "[2001:db8::1]:443", "xn--bcher-kva.example"} {
		if !ValidHost(host) {
			t.Errorf("%q is refused", host)
		}
	}
	for _, host := range []string{
		"", ":80", "a:", "a:x", "a:123456", "u@a", "a/b", "a b", "a,b", "a%41", "bücher", "[::1", "[::1]x", "[::1]:", "[127.0.0.1]", "[fe80::1%25eth0]",
		"::1", "a\\b", "a#b", "a?b", strings.Repeat("a", 256),
	} {
		if ValidHost(host) {
			t.Errorf("%q passes", host)
		}
	}
}
