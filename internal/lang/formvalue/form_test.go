package formvalue

import (
	"net/url"
	"strings"
	"testing"
)

func TestURLEncoded(t *testing.T) {
	f := func(body, path, want string) {
		t.Helper()
		form, _ := ParseURLEncoded([]byte(body))
		got, ok := form.Sole(path)
		if got != want || ok != (want != "") && strings.Trim(body, "=") != "email" {
			t.Errorf("%s of %q: %q, %v, want %q", path, body, got, ok, want)
		}
	}
	f("email=ann%40example.com&password=x", "email", "ann@example.com")
	f("e%6dail=Ann+Lee", "email", "Ann Lee")
	f("&&email=ann&", "email", "ann")
	f("email=a=b", "email", "a=b")
	f("email=", "email", "")
	f("email", "email", "")
	f("", "email", "")
	f("password=x", "email", "")
	f("user[email]=ann", "user.email", "ann")
	f("user.email=ann", "user.email", "ann")
	f("user%5Bemail%5D=ann", "user.email", "ann")
	f("a[b][c]=x", "a.b.c", "x")
	// Given twice, in one spelling of the name or in two.
	f("email=ann&email=bob", "email", "")
	f("email=ann&email=ann", "email", "")
	f("user[email]=ann&user.email=bob", "user.email", "")
	f("email=ann&Email=bob", "email", "")
	f("EMAIL=ann", "email", "")
	f("%20email=bob&email=ann", "email", "")
	f("email=ann&email%00x=bob", "email", "")
	f("email=ann&email[]=bob", "email", "")
	f("email=ann&email[x]=bob", "email", "")
	f("email[]=ann", "email", "")
	f("user[email]=ann&user[email][]=bob", "user.email", "")
	f("user_email=bob&user.email=ann", "user.email", "") // one to PHP
	f("k=a&%E2%84%AA=b", "k", "")                        // the sign of Kelvin folds to k
	// Some servers separate at semicolons, some do not.
	f("x=1;email=ann", "email", "")
	f("email=ann;x=1", "email", "")
	f("email=ann&x=1;email=bob", "email", "")
	f("email=ann&password=a;b", "email", "ann")
	// Escapes that are kept, dropped or read in another way.
	f("email=ann%zz", "email", "")
	f("email=%FFann", "email", "")
	f("%u0065mail=bob&email=ann", "email", "")
	f("email=ann&x%=1", "email", "")
	f("email=ann&x=%", "email", "ann")
	f("_charset_=utf-7&email=ann", "email", "")
	f("_charset_=UTF-8&email=ann", "email", "ann")
	f(`{"email":"ann"}`, "email", "")
	f(strings.Repeat("a&", maxFields-1)+"email=ann", "email", "ann")
	f(strings.Repeat("a&", maxFields)+"email=ann", "email", "")
}

// FuzzURLEncoded: what is found is what net/url finds, where it finds one value.
func FuzzURLEncoded(f *testing.F) {
	for _, seed := range []string{"email=ann&x=1", "e%6dail=+", "email=a;b&email", "user[email]=x&user.email", "%zz=1&email=%zz", "_charset_=x"} {
		f.Add(seed, "email")
		f.Add(seed, "user.email")
	}
	f.Fuzz(func(t *testing.T, body, path string) {
		form, ok := ParseURLEncoded([]byte(body))
		got, found := form.Sole(path)
		if !found {
			return
		}
		if !ok {
			t.Fatalf("%s of %q: %q of a form that cannot be read", path, body, got)
		}
		all, _ := url.ParseQuery(body)
		values := all[path]
		if b := bracketed(path); b != path {
			values = append(values, all[b]...)
		}
		if len(values) != 1 || values[0] != got {
			t.Errorf("%s of %q: %q, net/url says %q", path, body, got, values)
		}
	})
}
