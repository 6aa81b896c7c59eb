package jsonvalue

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	f := func(text, path, want string) {
		t.Helper()
		v, ok := Parse([]byte(text))
		if !ok {
			t.Fatalf("%s is not valid", text)
		}
		if got := v.Find(path); string(got) != want {
			t.Errorf("%s of %s: %q, want %q", path, text, got, want)
		}
	}
	f(`{"a":1}`, "a", `1`)
	f(" {\n\t\"a\" : 1 ,\r\n \"b\" : [ 1 , {\"c\" : \"]}\"} ] } ", "b", `[ 1 , {"c" : "]}"} ]`)
	f(`{"a":{"b":{"c":"x"}}}`, "a.b.c", `"x"`)
	f(`{"a":{"b":{"c":"x"}}}`, "a.b", `{"c":"x"}`)
	f(`{"a":{"b":1}}`, "a.b.c", ``)
	f(`{"a":{"b":1}}`, "b", ``)
	f(`{"a.b":1}`, "a.b", ``)
	f(`{"a":1,"a":2}`, "a", `2`)
	f(`{"a":{"b":1},"a":{"c":2}}`, "a.b", ``)
	f(`{"a":1,"\u0061":2}`, "a", `2`)
	f(`{"a\"b\\":"\\\"","c":3}`, `c`, `3`)
	f(`{"a\"b\\":"\\\"","c":3}`, `a"b\`, `"\\\""`)
	f(`{"":{"":7}}`, ".", `7`)
	f(`{"":7}`, "", `7`)
	f(`{"A":1}`, "a", ``)
	f(`{"키":"값"}`, "키", `"값"`)
	f(`[{"a":1}]`, "a", ``)
	f(`"a"`, "a", ``)
	f(`null`, "a", ``)
	f(`{}`, "a", ``)
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `{"a":1}{`, `{"a":1} x`, `{'a':1}`, `{"a":01}`, `{"a":1,}`, "\ufeff{}",
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		if v, ok := Parse([]byte(text)); ok || v != "" {
			t.Errorf("%.20q was taken for %.20q", text, v)
		}
	}
}

func TestText(t *testing.T) {
	f := func(v Value, want string, wantOK bool) {
		t.Helper()
		if got, ok := v.Text(); got != want || ok != wantOK {
			t.Errorf("%.40s: %q, %v, want %q, %v", v, got, ok, want, wantOK)
		}
	}
	f(`"a b"`, "a b", true)
	f(`""`, "", true)
	f(`"\u00e9\ud83d\ude00\n"`, "é😀\n", true)
	f(`"\ud800"`, "\ufffd", true)
	f("\"a\xffb\"", "a\ufffdb", true)
	f(`true`, "true", true)
	f(`false`, "false", true)
	f(`0`, "0", true)
	f(`-0`, "0", true)
	f(`-0.0`, "0", true)
	f(`-17`, "-17", true)
	f(`1.0`, "1", true)
	f(`1e0`, "1", true)
	f(`1.50`, "1.5", true)
	f(`1E3`, "1000", true)
	f(`1e-3`, "0.001", true)
	f(`1.00000000000000000001`, "1", true)
	f(`12345678901234567890`, "12345678901234567890", true)
	f(Value(strings.Repeat("9", 64)), strings.Repeat("9", 64), true)
	f(`1e-999`, "0", true)
	f(`1e63`, "1"+strings.Repeat("0", 63), true)
	if _, ok := Value(`1e64`).Text(); ok {
		t.Error("1e64 takes 65 digits and has a text")
	}
	if _, ok := Value(strings.Repeat("9", 65)).Text(); ok {
		t.Error("a number of 65 digits has a text")
	}
	f(`1e999`, "", false)
	f(`null`, "", false)
	f(`[1]`, "", false)
	f(`{"a":1}`, "", false)
	f(``, "", false)
}

// FuzzFind compares Find and Text with what encoding/json decodes.
func FuzzFind(f *testing.F) {
	f.Add(`{"a":{"b":"x"},"a":{"b":1.50}}`, "a.b")
	f.Add(`{"a\"\\":[{"}":"\\\""}],"\u0062":true}`, "b")
	f.Add("{\"\xff\": -0, \"\ufffd\":\"\\ud800\xfe\"}", "\ufffd")
	f.Add(`{"":{"":null}}`, ".")
	f.Add(` [1,2] `, "")
	f.Fuzz(func(t *testing.T, text, path string) {
		v, ok := Parse([]byte(text))
		if ok != json.Valid([]byte(text)) {
			t.Fatalf("%q: valid %v", text, ok)
		}
		got, ok := v.Find(path).Text()
		var want any
		if v != "" {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range strings.Split(path, ".") {
			object, _ := want.(map[string]any)
			want = object[name]
		}
		switch want := want.(type) {
		case string:
			if got != want || !ok {
				t.Errorf("%s of %q: %q, %v, want %q", path, text, got, ok, want)
			}
		case bool:
			if (got == "true") != want || (got == "false") == want || !ok {
				t.Errorf("%s of %q: %q, %v, want %v", path, text, got, ok, want)
			}
		case json.Number:
			checkNumber(t, string(want), got, ok)
		default:
			if ok {
				t.Errorf("%s of %q: %q, want none", path, text, got)
			}
		}
	})
}

// checkNumber: integers keep every digit, anything else is the same float64.
func checkNumber(t *testing.T, written, got string, ok bool) {
	t.Helper()
	if strings.ContainsAny(got, "eE+") {
		t.Errorf("%s became %s", written, got)
	}
	if !strings.ContainsAny(written, ".eE") {
		n, _ := new(big.Int).SetString(written, 10)
		if ok != (len(written) <= maxNumber) || ok && n.String() != got {
			t.Errorf("%.80s became %s, %v", written, got, ok)
		}
		return
	}
	want, err := json.Number(written).Float64()
	if !ok {
		if err == nil && want < 1e60 && want > -1e60 && (want > 1e-40 || want < -1e-40) {
			t.Errorf("%s became nothing", written)
		}
		return
	}
	if back, _ := json.Number(got).Float64(); err != nil || back != want {
		t.Errorf("%s became %s", written, got)
	}
}

// FuzzMembers: a Value that is not valid JSON may be nonsense, but no panic and
// no endless loop.
func FuzzMembers(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[]}}`)
	f.Add(`{"a`)
	f.Add(`{"a"`)
	f.Add(`{"a":"\`)
	f.Fuzz(func(t *testing.T, text string) {
		members := 0
		for m := Value(text).Members(); m.Next(); members++ {
			m.Value.Text()
		}
		if members > len(text) {
			t.Errorf("%d members in %q", members, text)
		}
	})
}

func TestFindPlainDoesNotAllocate(t *testing.T) {
	v, _ := Parse([]byte(`{"iss":"https://issuer.example","n":42,"user":{"name":"alice","tags":["a","b"]},"on":true}`))
	if n := testing.AllocsPerRun(100, func() {
		for _, path := range []string{"user.name", "n", "on", "user.other"} {
			v.Find(path).Text()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
