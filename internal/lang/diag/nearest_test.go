package diag

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"limits", "per", "match", "name", "algorithm", "on_store_failure", "instead_of", "for", "한국어"}
	f := func(word, want string) {
		t.Helper()
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	f("limit", "limits")
	f("Limits", "limits")
	f("lmits", "limits")
	f("ilmits", "limits")
	f("limtis", "limits")
	f("pre", "per")
	f("pr", "per")
	f("algoritm", "algorithm")
	f("algorithims", "algorithm")
	f("on-store-failure", "on_store_failure")
	f("onstorefailure", "on_store_failure")
	f("instead-of", "instead_of")
	f("한국", "한국어")

	f("limits", "") // known already
	f("quota", "")
	f("p", "")
	f("x", "")
	f("", "")
	f("xyz", "")
	f(strings.Repeat("limits", 1000), "")

	if got := Nearest("cat", []string{"bat", "hat"}); got != "bat" {
		t.Errorf("of two words as near got %q, want the first", got)
	}
	if got := Nearest("rate", []string{"gate", "rates", "grate"}); got != "gate" {
		t.Errorf("got %q, want the first", got)
	}
}
