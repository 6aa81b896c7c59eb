package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
)

type askingUser string

func (u askingUser) Value(name string) (string, bool) { return string(u), name == "header X-User" }

// An explanation tells which measure decides, who ordered it, until when and why.
func TestExplanationTellsOfMeasures(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 10/minute }]\n"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	live := rules.NewLive(set)
	problems := live.SetMeasures([]rules.Measure{
		{ID: "o-1", Kind: rules.Override, As: map[string]string{"user": "42"}, Rule: "api", Limits: []string{"5000/minute"}, Until: time.Date(2126, 11, 16, 20, 0, 0, 0, time.UTC), Reason: "migration", By: "ann"},
		{ID: "b-1", Kind: rules.Ban, As: map[string]string{"user": "43"}, Reason: "chargeback", By: "bob"},
	})
	if problems != nil {
		t.Fatal(problems)
	}
	f := func(user string, want ...string) {
		t.Helper()
		e := explained{Explanation: live.Explain(&tidegate.Request{Method: "GET", Path: "/", Values: askingUser(user)}), Answer: answer{Status: 200}}
		var out bytes.Buffer
		e.print(&Env{Stdout: &out}, false)
		for _, line := range want {
			if !strings.Contains(out.String(), line+"\n") {
				t.Errorf("%s is told\n%swant\n%s", user, out.String(), line)
			}
		}
		if len(want) == 0 && (strings.Contains(out.String(), "override") || strings.Contains(out.String(), "Refused")) {
			t.Errorf("%s is told\n%s", user, out.String())
		}
	}
	f("42", "    override o-1 of user=42 for rule api: 5000/minute, by ann, until 2126-11-16T20:00:00Z (migration)", "    limit    5000/1m0s sub_windows")
	f("43", "Refused by ban b-1 of user=43, by bob, until it is ended (chargeback).")
	f("44")
}
