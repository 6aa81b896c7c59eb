package cli

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/config"
)

// serve does not warn about the variables that other commands read.
func TestVariablesOfOtherCommands(t *testing.T) {
	for _, l := range []listener{{}, checkListener} {
		var asked []string
		r := remote{listener: l}
		err := r.find(Env{Getenv: func(name string) string {
			asked = append(asked, name+"=x")
			return ""
		}})
		if err != nil || len(asked) != 6 {
			t.Fatalf("%v, after it asked for %v", err, asked)
		}
		warned := func(environ []string) bool {
			_, list := config.Load(config.Options{File: "none.yaml", Environ: environ})
			text := new(strings.Builder)
			list.Write(text, false)
			return strings.Contains(text.String(), "no setting has this variable")
		}
		if warned(asked) {
			t.Errorf("it warns about one of %v", asked)
		}
		if !warned([]string{"TIDEGATE_NONSENSE=x"}) {
			t.Error("it warns about nothing: the test has lost its point")
		}
	}
}
