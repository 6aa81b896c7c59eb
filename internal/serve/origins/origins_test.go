package origins

import (
	"strings"
	"testing"
)

// A URL has its source, and no secret in what it is called.
func TestOpen(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		o, err := Open(url, Options{})
		switch {
		case err != nil && (want != "" || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%s: %v", url, err)
		case err == nil && o.Name() != want:
			t.Errorf("%s is called %s, want %q", url, o.Name(), want)
		}
		if err == nil {
			_ = o.Close()
		} else if o != nil {
			t.Errorf("%s: %v and an error", url, o)
		}
	}
	f("https://h/rules.yaml", "https://h/rules.yaml")
	f("http://h:1/rules/bundle", "http://h:1/rules/bundle")
	f("https://u:s3cret@h/rules.yaml", "")
	f("dogma://h/p/r/rules.yaml", "dogma://h/p/r/rules.yaml")
	f("dogmas://h/p/r/", "dogmas://h/p/r/")
	f("dogma://h/p", "")
	f("ftp://h/x", "")
}
