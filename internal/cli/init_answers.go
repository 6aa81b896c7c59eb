package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/lint"
)

// answers are what tidegate init has to know. "" and none are the same where something
// can be left out.
type answers struct{ Upstream, Match, Per, JWKS, Limit, Login, Proxies, Redis string }

func firstAnswers() answers {
	return answers{Upstream: "http://127.0.0.1:9000", Match: "/", Per: "ip", Limit: "100/minute", Login: "POST /login"}
}

// The files that init writes.
const (
	rulesFile  = "rules.yaml"
	testFile   = "rules_test.yaml"
	configFile = "tidegate.yaml"
)

var initFiles = []string{rulesFile, testFile, configFile}

// existing returns those of the files that are there already.
func existing(folder string) (there []string) {
	for _, name := range initFiles {
		name = filepath.Join(folder, name)
		if _, err := os.Lstat(name); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// given returns an answer, "" for none.
func given(text string) string {
	if text == "none" {
		return ""
	}
	return text
}

// check returns what is wrong with the answers: what they make would not load, or lint
// would find something in it.
func (a *answers) check(ctx context.Context, folder string) (problems []string) {
	if !slices.Contains(countable, a.Per) {
		return []string{fmt.Sprintf("%q cannot be counted by; write ip, user or api-key", a.Per)}
	}
	tell := func(found diag.List) {
		for _, p := range found {
			if text := strings.TrimSuffix(p.Message+"; "+p.Hint, "; "); !slices.Contains(problems, text) {
				problems = append(problems, text)
			}
		}
	}
	tell(lint.Text(rulesFile, []byte(a.rules()), lint.Options{}))
	if len(a.limits()) == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Sprintf("%q is not a limit; write, for example, 100/minute", a.Limit))
	}
	_, found := config.Load(config.Options{
		File: filepath.Join(folder, configFile), Environ: []string{},
		ReadFile: func(string) ([]byte, error) { return []byte(a.config()), nil },
		Stat: func(name string) (fs.FileInfo, error) {
			if filepath.Base(name) == rulesFile { // it will be there
				return os.Stat(".")
			}
			return os.Stat(name)
		},
	})
	if found.HasErrors() {
		tell(slices.DeleteFunc(found, func(p diag.Problem) bool { return p.Severity != diag.Error }))
	}
	if len(problems) == 0 {
		problems = a.try(ctx)
	}
	return problems
}

// try runs the test in a folder of its own, and returns why it does not pass.
func (a *answers) try(ctx context.Context) []string {
	folder, err := os.MkdirTemp("", "tidegate-init")
	if err == nil {
		defer os.RemoveAll(folder)
		err = a.write(folder)
	}
	if err != nil {
		return []string{err.Error()}
	}
	t := runTest(ctx, filepath.Join(folder, testFile))
	switch {
	case t.report == nil:
		return []string{"no test can be made of this: " + t.problems[0].Message}
	case t.report.Failed() > 0 || len(t.report.Untouched) > 0:
		return []string{"the rules would not do what their test says; write the patterns and limits in another way"}
	}
	return nil
}

// write puts the files into the folder, all or none.
func (a *answers) write(folder string) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	secret := fs.FileMode(0o644)
	if u, err := url.Parse(given(a.Redis)); err != nil || u.User != nil || u.RawQuery != "" {
		secret = 0o600 // there may be a password in it, as in ?sentinel_password=
	}
	var made []string
	defer func() {
		if err != nil {
			for _, name := range made {
				_ = os.Remove(name)
			}
		}
	}()
	for i, text := range []string{a.rules(), a.tests(), a.config()} {
		name, mode := filepath.Join(folder, initFiles[i]), fs.FileMode(0o644)
		if initFiles[i] == configFile {
			mode = secret
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		made = append(made, name)
		_, err = io.WriteString(f, text)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rate is one limit as it was written.
type rate struct {
	events int64
	period string
}

// limits takes the limits apart; nil if one of them is not a limit.
func (a *answers) limits() (all []rate) {
	for part := range strings.SplitSeq(a.Limit, ",") {
		events, period, ok := strings.Cut(strings.TrimSpace(part), "/")
		n, err := strconv.ParseInt(strings.TrimSpace(events), 10, 64)
		if !ok || err != nil || n < 1 {
			return nil
		}
		all = append(all, rate{n, strings.TrimSpace(period)})
	}
	return all
}

// limitsText returns the value of limits, each multiplied by times unless a product is too large.
func (a *answers) limitsText(times int64) string {
	all := a.limits()
	if len(all) == 0 {
		return yamlText(a.Limit) // which lint will not like
	}
	const most = 1_000_000 // a second, for one key
	if slices.ContainsFunc(all, func(l rate) bool { return l.events > most/times }) {
		times = 1
	}
	var texts []string
	for _, l := range all {
		texts = append(texts, yamlText(fmt.Sprintf("%d/%s", l.events*times, l.period)))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// yamlText writes text so that YAML reads it as it is.
func yamlText(text string) string {
	odd := strings.ContainsAny(text, "{}[],#&*!|>'\"%@`\\\n\t") || strings.Contains(text, ":") && !strings.Contains(text, "://")
	if odd || text == "" || strings.TrimSpace(text) != text || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "?") {
		return strconv.Quote(text)
	}
	return text
}

// typedLines sends the lines of r until it ends.
func typedLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for typed := bufio.NewScanner(r); typed.Scan(); {
			lines <- typed.Text()
		}
	}()
	return lines
}
