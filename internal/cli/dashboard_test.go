package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// inScript is a command in a script of the dashboard. What is added to it there is not in it.
var inScript = regexp.MustCompile(`"tidegate ([a-z][^"]*)"`)

// Every command that the dashboard shows is understood as it is written.
func TestCommandsOfTheDashboard(t *testing.T) {
	scripts, err := filepath.Glob("../front/dashboard/files/*.js")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	var all []byte
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"rules.yaml": "version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 5/minute }]\n",
		"operators":  "ann rule " + strings.Repeat("0", 64) + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	understood := 0
	for _, m := range inScript.FindAllStringSubmatch(string(all), -1) {
		line := m[1]
		switch {
		case strings.HasSuffix(line, "="):
			line += "42"
		case strings.HasSuffix(line, " "):
			line += "user=42"
		}
		if strings.HasPrefix(line, "explain ") && !strings.Contains(line, "GET /") {
			line += " GET /"
		}
		args := strings.Fields(strings.ReplaceAll(line, "//HOST:", "//127.0.0.1:"))
		if args[0] == "serve" { // it would; its settings are those of config
			args[0] = "config"
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var out bytes.Buffer
		code := run(ctx, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(name string) string {
			if name == "TIDEGATE_SERVER" {
				return "http://127.0.0.1:1"
			}
			return ""
		}}, args)
		cancel()
		if code == exitUsage {
			t.Errorf("tidegate %s\n%s", line, &out)
		}
		understood++
	}
	if understood < 15 {
		t.Errorf("found %d commands: are they still written like this?", understood)
	}
}
