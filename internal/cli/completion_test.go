package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// completionScript writes the script for a shell into a file.
func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := run(t.Context(), Env{Stdout: &out, Stderr: &problems}, []string{"completion", shell}); code != exitOK {
		t.Fatalf("exit %d: %s", code, problems.String())
	}
	name := filepath.Join(t.TempDir(), "_tidegate")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// completedFolder makes the folder that is completed in.
func completedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"rules.yaml", "rules_test.yaml", "notes.txt", "my rules.yml", "sub/more.yaml", "token"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bash asks the completion function of a real bash for the last of each list of words, as
// readline has split them.
func bash(t *testing.T, asked [][]string) [][]string {
	t.Helper()
	var script strings.Builder
	fmt.Fprintf(&script, "set -u; source '%s'\n", completionScript(t, "bash"))
	for _, words := range asked {
		script.WriteString("COMP_WORDS=(")
		for _, w := range words {
			script.WriteString(" '" + w + "'")
		}
		fmt.Fprintf(&script, "); COMP_CWORD=%d; _tidegate; echo \"== ${#COMPREPLY[@]}\"; ((${#COMPREPLY[@]})) && printf '%%s\\n' \"${COMPREPLY[@]}\"\n", len(words)-1)
	}
	c := exec.CommandContext(t.Context(), testdep.Need(t, "bash"), "--norc", "--noprofile", "-c", script.String())
	c.Dir = completedFolder(t)
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if problems.Len() > 0 {
		t.Fatalf("bash says %s: %v", problems.String(), err)
	}
	var all [][]string
	for _, part := range strings.Split(string(out), "== ")[1:] {
		lines := strings.Split(strings.TrimSuffix(part, "\n"), "\n")[1:]
		slices.Sort(lines)
		all = append(all, lines)
	}
	if len(all) != len(asked) {
		t.Fatalf("%d answers to %d questions: %s", len(all), len(asked), out)
	}
	return all
}

func TestBashCompletes(t *testing.T) {
	var asked, want [][]string
	f := func(typed string, candidates ...string) {
		asked = append(asked, strings.Split(typed, " "))
		slices.Sort(candidates)
		want = append(want, candidates)
	}
	f("tidegate li", "lint")
	f("tidegate e", "explain")
	f("tidegate zzz")
	f("tidegate --v", "--version")
	f("tidegate lint --s", "--strict")
	f("tidegate lint -s", "-strict")
	f("tidegate lint --zzz")
	f("tidegate lint --format ", "text", "json", "sarif")
	f("tidegate lint --format s", "sarif")
	f("tidegate lint --format = s", "sarif") // as bash splits --format=s
	f("tidegate lint --format =", "text", "json", "sarif")
	f("tidegate lint --format=s", "--format=sarif") // where = splits no words
	f("tidegate lint -format s", "sarif")
	f("tidegate lint --door f", "forward-auth")
	f("tidegate lint --door check rules", "rules.yaml", "rules_test.yaml")
	f("tidegate lint ", "rules.yaml", "rules_test.yaml", "my rules.yml", "sub")
	f("tidegate lint --strict r", "rules.yaml", "rules_test.yaml")
	f("tidegate lint sub/", "sub/more.yaml")
	f(`tidegate lint my\`, "my rules.yml")
	f("tidegate lint rules.yaml --js", "--json")
	f("tidegate lint -- r", "rules.yaml", "rules_test.yaml")
	f("tidegate lint --was n", "notes.txt")
	f("tidegate test r", "rules_test.yaml")
	f("tidegate test ", "rules_test.yaml", "sub")
	f("tidegate keys ", "get", "refund", "reset", "top")
	f("tidegate keys --json r", "refund", "reset")
	f("tidegate keys get r")
	f("tidegate keys get --as ")
	f("tidegate keys get --token-file t", "token")
	f("tidegate keys --server http : //r") // as bash splits an address
	f("tidegate explain P", "POST", "PUT", "PATCH")
	f("tidegate explain --rules n", "notes.txt")
	f("tidegate serve --log.l", "--log.level")
	f("tidegate serve --log.level w", "warn")
	f("tidegate serve --tls.client_auth = re", "request", "require")
	f("tidegate serve --rules s", "sub")
	f("tidegate serve --trust.unix --tls.ce", "--tls.cert")
	f("tidegate completion f", "fish")
	f("tidegate completion bash f")
	f("tidegate help com", "completion")
	for i, got := range bash(t, asked) {
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q: got %q, want %q", asked[i], got, want[i])
		}
	}
}

// Every command, and every flag of it, is completed, and what follows a flag with a
// value is never taken for an argument.
func TestBashKnowsTheTable(t *testing.T) {
	asked, want := [][]string{{"tidegate", ""}}, [][]string{{"--help", "--version", "help"}}
	for _, c := range commands {
		want[0] = append(want[0], c.name)
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		c.setup(flags)
		names := []string{"--help"}
		flags.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
		asked, want = append(asked, []string{"tidegate", c.name, "--"}), append(want, names)
		flags.VisitAll(func(f *flag.Flag) {
			if b, ok := f.Value.(interface{ IsBoolFlag() bool }); !ok || !b.IsBoolFlag() {
				asked, want = append(asked, []string{"tidegate", c.name, "--" + f.Name, "--"}), append(want, nil)
			}
		})
	}
	for i, got := range bash(t, asked) {
		slices.Sort(want[i])
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q: got %q, want %q", asked[i], got, want[i])
		}
	}
}

// fish tells what it would offer; zsh at least reads the script.
func TestFishCompletes(t *testing.T) {
	fish := testdep.Need(t, "fish")
	script, dir := completionScript(t, "fish"), completedFolder(t)
	f := func(typed string, want ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), fish, "--no-config", "-c", fmt.Sprintf("source '%s'; complete -C '%s'", script, typed))
		c.Dir = dir
		c.Env = append(os.Environ(), "HOME="+dir)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, word)
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: got %q, want %q", typed, got, w)
			}
		}
		if len(want) == 0 && len(got) > 0 {
			t.Errorf("%q: got %q, want nothing", typed, got)
		}
	}
	f("tidegate li", "lint")
	f("tidegate lint --", "--strict", "--format", "--door", "--help")
	f("tidegate lint --format ", "text", "json", "sarif")
	f("tidegate lint --door=f", "--door=forward-auth")
	f("tidegate lint r", "rules.yaml")
	f("tidegate keys ", "get", "refund", "reset", "top")
	f("tidegate keys get --as z")
	f("tidegate serve --log.", "--log.level", "--log.format")
	f("tidegate serve --log.level ", "debug", "warn")
	f("tidegate serve --rules r", "rules.yaml")
}

func TestZshReadsTheScript(t *testing.T) {
	zsh := testdep.Need(t, "zsh")
	script := completionScript(t, "zsh")
	if out, err := exec.CommandContext(t.Context(), zsh, "-f", "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	// It is found and loaded as completions are.
	load := fmt.Sprintf("fpath=('%s' $fpath); autoload -Uz compinit; compinit -D -u; print -- $_comps[tidegate]; autoload +X _tidegate", filepath.Dir(script))
	if out, err := exec.CommandContext(t.Context(), zsh, "-f", "-c", load).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "_tidegate" {
		t.Errorf("%v: %s", err, out)
	}
}
