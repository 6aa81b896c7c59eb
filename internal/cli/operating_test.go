package cli

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	// inPage is a command in an indented or fenced block of a page.
	inPage = regexp.MustCompile(`(?m)^(?: {4}|\$ )?tidegate ([a-z].*)$`)
	word   = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
)

// Every command of the runbook is understood as it is written, names and flags: nobody should find
// a typing error at 3 am. What it would do is not asked: there is no server.
func TestCommandsOfTheRunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"rules.yaml":      "version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: ip, limits: 5/minute }]\n",
		"rules_test.yaml": "rules: rules.yaml\ntests: []\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nowhere := func(name string) string {
		if name == "TIDEGATE_SERVER" || name == "TIDEGATE_CHECK_SERVER" {
			return "http://127.0.0.1:1"
		}
		return ""
	}
	understood := 0
	f := func(line string) {
		line, _, _ = strings.Cut(line, " #")
		line, _, _ = strings.Cut(line, " | ")
		args := word.FindAllString(line, -1)
		for i := range args {
			args[i] = strings.Trim(args[i], `"'`)
		}
		if args[0] == "serve" { // it would; its settings are those of config
			args = append([]string{"config"}, args[1:]...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out, problems bytes.Buffer
		if code := run(ctx, Env{Stdout: &out, Stderr: &problems, Getenv: nowhere}, args); code == exitUsage {
			t.Errorf("tidegate %s\n%s", line, &problems)
			return
		}
		understood++
	}
	for _, m := range inPage.FindAllStringSubmatch(string(page), -1) {
		f(m[1])
	}
	if understood < 20 {
		t.Errorf("understood %d commands: are they still written like this?", understood)
	}
	for _, wrong := range []string{"keys topp --by refused", "override user=42 --rule api --limit 5/minute --for 2h"} {
		var out bytes.Buffer
		if code := run(t.Context(), Env{Stdout: &out, Stderr: &out, Getenv: nowhere}, strings.Fields(wrong)); code != exitUsage {
			t.Errorf("%q was understood: %s", wrong, &out)
		}
	}
}
