package rulepack

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLabel(t *testing.T) {
	digest := Digest([]string{""}, nil)
	for _, l := range []Label{
		{Digest: digest},
		{Digest: digest, Hash: "h", Main: "a/b.yaml", Author: "Ann \"<ann@example.com>\"\n", Reason: "ä", At: time.Unix(1, 2).UTC(), Revision: "7-12345678"},
		{Digest: digest, Main: "folder/"},
		{Digest: digest, Main: "1/rules.yaml", Over: []string{"2/", "3/x/y.yaml"}},
	} {
		text, err := l.String()
		if err != nil || strings.Contains(text, "\n") {
			t.Errorf("%q, %v", text, err)
		}
		if got, err := ParseLabel(text); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%+v, %v; want %+v", got, err, l)
		}
	}
	for _, l := range []Label{{Author: strings.Repeat("x", maxWho+1)}, {Reason: strings.Repeat("x", maxWhy+1)}, {Hash: strings.Repeat("x", maxText)}} {
		if text, err := l.String(); err == nil {
			t.Errorf("%.50s is fine", text)
		}
	}
	for _, text := range []string{
		"", "x", "{}", `{"digest":"` + strings.Repeat("x", 64) + `"}`, `{"digest":"12"}`,
		`{"digest":"` + digest + `","main":"../x"}`, `{"digest":"` + digest + `","main":"/"}`, `{"digest":"` + digest + `","over":["../x"]}`, `{"digest":"` + digest + `","author":7}`,
		`{"digest":"` + digest + `","reason":"` + strings.Repeat("x", maxText) + `"}`,
	} {
		if l, err := ParseLabel(text); err == nil {
			t.Errorf("%.80s is read as %+v", text, l)
		}
	}
}

func TestRevisions(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	if got := Revision(17, digest); got != "17-01234567" {
		t.Error(got)
	}
	f := func(text string, want bool) {
		t.Helper()
		if got := Means(text, "17-01234567"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	f("17", true)
	f("17-01234567", true)
	f("1", false)
	f("17-0123456", false)
	f("", false)
	f("01234567", false)
}
