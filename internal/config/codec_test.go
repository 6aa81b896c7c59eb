package config

import (
	"net/url"
	"strconv"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	f := func(text string, want time.Duration, ok bool) {
		t.Helper()
		if got, gotOK := parseDuration(text); gotOK != ok || ok && got != want {
			t.Errorf("%q: got %v, %v, want %v, %v", text, got, gotOK, want, ok)
		}
	}
	f("0", 0, true)
	f("1h30m", 90*time.Minute, true)
	f("1d", day, true)
	f("2d12h", 60*time.Hour, true)
	f("106751d", 106751*day, false) // beyond what the digits of days may be
	f("1d24h", 0, false)
	f("1d-1h", 0, false)
	f("1.5d", 0, false)
	f("d", 0, false)
	f("-1d", 0, false)
	f("1h1d", 0, false)
	f("", 0, false)
}

func TestWriteDuration(t *testing.T) {
	f := func(v time.Duration, want string) {
		t.Helper()
		got := writeDuration(v)
		if back, ok := parseDuration(got); got != want || !ok || back != v {
			t.Errorf("%v: got %q, read back as %v, want %q", v, got, back, want)
		}
	}
	f(0, "0")
	f(1500*time.Millisecond, "1.5s")
	f(10*time.Second, "10s")
	f(2*time.Minute, "2m")
	f(time.Hour, "1h")
	f(time.Hour+time.Second, "1h0m1s")
	f(10*time.Hour, "10h")
	f(day+10*time.Minute, "24h10m")
}

func TestSizes(t *testing.T) {
	any := size(span[int64]{most: 1<<63 - 1})
	f := func(text string, want int64, back string) {
		t.Helper()
		got, m := any.read(rawValue{text: text})
		if m.any() || got != want || any.write(got) != back {
			t.Errorf("%q: got %d %q %s, want %d %q", text, got, any.write(got), m.message, want, back)
		}
	}
	f("0", 0, "0")
	f("1000", 1000, "1KB")
	f("1023B", 1023, "1023")
	f("64KB", 64_000, "64KB")
	f("64kB", 64_000, "64KB")
	f("64KiB", 1<<16, "64KiB")
	f("1024KiB", 1<<20, "1MiB")
	f("128KB", 128_000, "125KiB")
	f("8388607TiB", 8388607<<40, "8388607TiB")

	for _, text := range []string{"8388608TiB", "9223372036854775808", "18446744073709551616KB", "99999999TiB", "1BB", "KB", "1iB", "1.5GB", "-1", "+1", "", "1 KB", "0x10"} {
		if got, m := any.read(rawValue{text: text}); !m.any() {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	read := func(text string) Address {
		a, m := address("8080").read(rawValue{text: text})
		if m.any() {
			t.Fatalf("%q %s", text, m.message)
		}
		return a
	}
	local := func(text string, want bool) {
		t.Helper()
		if got := read(text).Local(); got != want {
			t.Errorf("%q is local: %v", text, got)
		}
	}
	local("127.0.0.1:80", true)
	local("127.9.9.9:80", true)
	local("[::1]:80", true)
	local("[::ffff:127.0.0.1]:80", true)
	local("localhost:80", true)
	local("unix:/run/x", true)
	local(":80", false)
	local("0.0.0.0:80", false)
	local("[::]:80", false)
	local("10.0.0.1:80", false)
	local("[fe80::1%lo]:80", false)

	meet := func(a, b string, want bool) {
		t.Helper()
		if read(a).meets(read(b)) != want || read(b).meets(read(a)) != want {
			t.Errorf("%q and %q meet: %v", a, b, !want)
		}
	}
	meet("127.0.0.1:80", "127.0.0.1:80", true)
	meet("127.0.0.1:80", "127.0.0.1:81", false)
	meet("127.0.0.1:80", "127.0.0.2:80", false)
	meet("127.0.0.1:80", "localhost:80", true)
	meet("localhost:80", "[::1]:80", true)
	meet("10.0.0.1:80", "localhost:80", false)
	meet(":80", "10.0.0.1:80", true)
	meet("0.0.0.0:80", "[::]:80", true)
	meet("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true)
	meet("[::ffff:10.0.0.1]:80", "10.0.0.1:80", true)
	meet("[::ffff:0.0.0.0]:80", "10.0.0.1:80", true)
	meet("127.0.0.1:0", "127.0.0.1:0", false)
	meet("unix:/run/x", "unix:/run/../run/x", true)
	meet("unix:/run/x", "unix:/run/y", false)
	meet("unix:/run/x", ":80", false)

	reached := func(a, by string, want bool) {
		t.Helper()
		u, err := url.Parse(by)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(a).reachedAt(u.Hostname(), portOf(u)); got != want {
			t.Errorf("%s reached at %s: %v", a, by, got)
		}
	}
	reached("127.0.0.1:8080", "http://127.0.0.1:8080", true)
	reached("127.0.0.1:8080", "http://localhost:8080/x", true)
	reached("127.0.0.1:8080", "http://0.0.0.0:8080", true)
	reached("127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080", true)
	reached(":8080", "http://[::ffff:127.0.0.1]:8080", true)
	reached("[::ffff:127.0.0.1]:8080", "http://127.0.0.1:8080", true)
	reached("127.0.0.1:8080", "http://127.0.0.1:8081", false)
	reached("127.0.0.1:80", "http://127.0.0.1", true)
	reached(":443", "https://localhost", true)
	reached(":443", "http://localhost", false)
	reached(":80", "http://10.0.0.1", false) // another machine, for all we know
	reached("10.0.0.1:80", "http://10.0.0.1", true)
	reached("10.0.0.1:80", "http://127.0.0.1", false)
	reached("unix:/run/x", "http://127.0.0.1", false)
}

func TestMask(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := mask(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	f("http://a:b@c/d", "http://***@c/d")
	f("- https://üser:p@ss@c # x", "- https://*********@c # x")
	f("a:b@c", "a:*@c")
	f("redis://:secret@c, http://d", "redis://*******@c, http://d")
	f("unix:@name", "unix:@name")
	f("someone@example.com", "someone@example.com")
	f("http://a:1 b@c", "http://*****@c") // a password may have a space
	f("http://a, http://b:1 c@d", "http://a, http://*****@d")
	f("", "")
}

// A share is written as it was read, however small.
func TestPercent(t *testing.T) {
	for i := range 10_000 {
		text := strconv.FormatFloat(float64(i)/100, 'f', -1, 64) + "%"
		v, m := percent.read(rawValue{text: text})
		if got := percent.write(v); m.any() || got != text {
			t.Fatalf("%s is read as %v (%s), and written as %s", text, v, m.message, got)
		}
	}
	for _, text := range []string{"", "%", "1", "1 %", "1e1%", "0x1p-2%", "NaN%", "Inf%", "100.1%", "+1%", "-0%", "1_0%"} {
		if v, m := percent.read(rawValue{text: text}); !m.any() {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}
