package etcd

import (
	"crypto/tls"
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	f := func(url, name, endpoints, wrong string) {
		t.Helper()
		got, err := read(url)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", url, err, wrong)
			}
			return
		}
		if err != nil || got.name != name || strings.Join(got.endpoints, " ") != endpoints || Check(url) != nil {
			t.Errorf("%s: %+v, %v", url, got, err)
		}
	}
	f("etcd://h/r", "etcd://h/r", "http://h:2379", "")
	f("etcds://ann:secret@a:1,b,[::1]/tidegate/rules/", "etcds://a:1,b,[::1]/tidegate/rules", "https://a:1 https://b:2379 https://[::1]:2379", "")
	f("etcd://ann@h/r", "etcd://h/r", "http://h:2379", "")
	f("http://h/r", "", "", "must begin with etcd://")
	f("etcd:///r", "", "", "names no host")
	f("etcd://a,/r", "", "", "names no host")
	f("etcd://:secret@h/r", "", "", "user or password")
	f("etcd://ann:secret%zz@h/r", "", "", "user or password")
	for _, url := range []string{"etcd://h", "etcd://h/", "etcd://h//", "etcd://h/a/../b", "etcd://h/a?x=secret", "etcd://h/a#b", "etcd://a:se/secret@h/r"} {
		f(url, "", "", "ends with the prefix")
	}
	if _, err := Open(Config{URL: "etcd://h/r", TLS: &tls.Config{}}); err == nil || !strings.Contains(err.Error(), "use etcds://") {
		t.Errorf("certificates without TLS: %v", err)
	}
}

func FuzzURL(f *testing.F) {
	f.Add("etcd://ann:hunter2@a,b/r")
	f.Fuzz(func(t *testing.T, text string) {
		const secret = "hunter2"
		got, err := read("etcd://ann:" + secret + "@" + text)
		if err == nil && (len(got.endpoints) == 0 || got.prefix == "") {
			t.Errorf("%q: %+v", text, got)
		}
		if !strings.Contains(text, secret) && (strings.Contains(got.name, secret) || err != nil && strings.Contains(err.Error(), secret)) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	})
}
