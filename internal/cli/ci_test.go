package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// pullRequest is a checkout whose branch lowers a limit of origin/main.
func pullRequest(t *testing.T) {
	t.Helper()
	testdep.Need(t, "git")
	t.Chdir(t.TempDir())
	for _, pair := range []string{"AUTHOR_NAME=ann", "AUTHOR_EMAIL=ann@example.com", "COMMITTER_NAME=ann", "COMMITTER_EMAIL=ann@example.com", "CONFIG_NOSYSTEM=1"} {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv("GIT_"+name, value)
	}
	t.Setenv("HOME", t.TempDir())
	git := func(args ...string) {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	write := func(limit string) {
		if err := os.MkdirAll("rules", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("rules/api.yaml", []byte("version: 1\nrules: [{ name: api, per: ip, limits: "+limit+" }]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", limit)
	}
	git("init", "-q", "-b", "lower")
	write("100/minute")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	write("50/minute")
}

// The files of deploy/ci are YAML, and what they run works on a pull request as it is written there.
func TestCIFilesRun(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pullRequest(t)
	variables := map[string]string{"GITHUB_BASE_REF": "main", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
	f := func(name string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, "deploy/ci", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := yamltree.Parse(name, text); problems.HasErrors() {
			t.Error(problems)
		}
		lines := regexp.MustCompile(`(?m)\btidegate (ci .*) > (\w+\.md)$`).FindAllStringSubmatch(string(text), -1)
		if len(lines) != 1 || strings.Count(string(text), lines[0][2]) < 3 {
			t.Fatalf("%s: found %q", name, lines)
		}
		if !strings.Contains(string(text), "go install tidegate.dev/tidegate/cmd/tidegate@latest") {
			t.Errorf("%s does not install the command", name)
		}
		var args []string
		for _, arg := range strings.Fields(lines[0][1]) {
			args = append(args, os.Expand(strings.Trim(arg, `"`), func(v string) string { return variables[v] }))
		}
		var out, problems bytes.Buffer
		if code := run(t.Context(), Env{Stdout: &out, Stderr: &problems, Getenv: func(string) string { return "" }}, args); code != exitOK {
			t.Fatalf("%s: tidegate %q: exit %d: %s%s", name, args, code, &out, &problems)
		}
		if !strings.Contains(out.String(), "limits 100/minute → 50/minute") {
			t.Errorf("%s: %s", name, &out)
		}
		// The flags that a comment proposes are there.
		for _, flag := range regexp.MustCompile(`--(server|max-refused)\b`).FindAllStringSubmatch(string(text), -1) {
			var help bytes.Buffer
			run(t.Context(), Env{Stdout: &help, Stderr: &help}, []string{"ci", "--help"})
			if !strings.Contains(help.String(), "  --"+flag[1]) {
				t.Errorf("%s: there is no flag --%s", name, flag[1])
			}
		}
	}
	f("github-actions.yml")
	f("gitlab-ci.yml")
}

// What somebody else wrote is shown as it is in a comment: it makes no link, no table and no mention.
func TestCommentsAreEscaped(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := escapeMarkdown(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	f("plain text, 100/minute → 50/minute", "plain text, 100/minute → 50/minute")
	f("a|b", `a\|b`)
	f("[x](http://evil)", `\[x\]\(http://evil\)`)
	f("<img src=x>", `\<img src=x\>`)
	f("@everyone `code` **bold** a_b", "@\u200beveryone \\`code\\` \\*\\*bold\\*\\* a\\_b")
	f("two\nlines\x1b[31m", `two?lines?\[31m`)
	f("&amp; ~~x~~ #1 !", `\&amp; \~\~x\~\~ \#1 \!`)
}
