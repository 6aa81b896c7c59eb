package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this binary the command, for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tidegate": func() { os.Exit(Main(System(), os.Args[1:])) },
	})
}

// Each script runs the command as an operator would; -update rewrites what it is
// to print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true})
}
