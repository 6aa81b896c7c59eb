package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/config-servers.md shows the files beside it, and each is a configuration.
func TestConfigServersPageShowsWhatIsTrue(t *testing.T) {
	t.Chdir("../..")
	src := upToDate(t, "docs/config-servers.md", "docs")
	files, err := filepath.Glob("docs/config-servers/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%q, %v", files, err)
	}
	if fences := strings.Count(src, "\n```yaml\n"); fences != len(files) {
		t.Errorf("%d YAML blocks, and %d files", fences, len(files))
	}
	for _, file := range files {
		if !strings.Contains(src, "<!-- config-servers/"+filepath.Base(file)+" -->") {
			t.Errorf("the page does not show %s", file)
		}
		var out, problems bytes.Buffer
		code := run(t.Context(), Env{Stdout: &out, Stderr: &problems, Getenv: os.Getenv}, []string{"config", "-c", installed(t, file)})
		if code != exitOK || problems.Len() > 0 {
			t.Errorf("%s: %d\n%s", file, code, problems.String())
		}
	}
}

// installed returns a copy of a configuration, with the files that it names around it.
func installed(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/var/lib/tidegate/", dir+"/", "/etc/tidegate/", dir+"/").Replace(string(src))
	for _, m := range regexp.MustCompile(`(?:token_file|password_file|tokens|ca|cert|key): ([a-z.-]+)`).FindAllStringSubmatch(text, -1) {
		write(m[1], "something\n")
	}
	write("rules.yaml", "version: 1\nrules: [{ name: api, per: ip, limits: 5/second }]\n")
	if err := os.Mkdir(filepath.Join(dir, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	return write("tidegate.yaml", text)
}
