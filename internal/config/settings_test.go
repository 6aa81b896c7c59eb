package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

func TestEverySettingIsDescribed(t *testing.T) {
	if !slices.Equal(slices.Sorted(maps.Keys(others)), slices.Sorted(func(yield func(string) bool) {
		for _, s := range table {
			yield(s.path)
		}
	})) {
		t.Error("others does not have exactly the settings of the table")
	}
	seen := make(map[string]bool)
	for _, s := range table {
		if seen[s.flag()] || seen[s.env()] {
			t.Errorf("%s: another setting has the flag %s or the variable %s", s.path, s.flag(), s.env())
		}
		seen[s.flag()], seen[s.env()] = true, true
		if slices.Contains(elsewhere, s.env()) || serviceLink.MatchString(s.env()) {
			t.Errorf("%s: the variable %s means something else", s.path, s.env())
		}
		if ticks := strings.Count(s.help, "`"); ticks != 2 && !s.slot.yesNo || strings.ContainsAny(s.help, "|\n") || s.help == "" {
			t.Errorf("%s: the help %q does not fit flags and table", s.path, s.help)
		}
		for _, text := range []string{s.example, s.fallback} {
			var c Config
			if text == "" && s.fallback == "" {
				continue
			}
			if wrongs := s.slot.set(&c, []rawValue{{text: text}}); len(wrongs) > 0 {
				t.Errorf("%s: %q %s", s.path, text, wrongs[0].message)
			} else if got := s.slot.write(&c); !slices.Equal(got, []string{text}) {
				t.Errorf("%s: %q is written as %q", s.path, text, got)
			}
		}
	}
	// What fields finds once, the table has in one place.
	for _, prefix := range []string{"", "listen.", "trust.", "trust.jwt.", "store.", "store.memory.", "limits.", "health.", "log."} {
		words := fields(prefix)
		if slices.Sort(words); len(slices.Compact(slices.Clone(words))) != len(words) {
			t.Errorf("%q: the table has a map in two places: %v", prefix, words)
		}
	}
}

func TestFlagsHaveHelp(t *testing.T) {
	set := flag.NewFlagSet("serve", flag.ContinueOnError)
	var text bytes.Buffer
	set.SetOutput(&text)
	Flags(set)
	set.PrintDefaults() // also asks a zero flagValue
	for _, want := range []string{
		"-c FILE\n", "-config FILE\n", "-listen.admin ADDRESS\n", "(default 127.0.0.1:9090)", "-trust.unix\n", "2s, or health.every if that is shorter",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestSettingsAreJSON(t *testing.T) {
	text, err := json.Marshal(load(t, "drain: 1s", nil).Settings())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"path":"drain","flag":"--drain","env":"TIDEGATE_DRAIN","value":"1s","origin":"tidegate.yaml:1:8","default":"30s",` +
		`"help":"TIME for requests in flight to end at shutdown; 0 to cut them off"}]`
	if !strings.HasSuffix(string(text), want) {
		t.Errorf("got %s\nwant at its end %s", text, want)
	}
}

func TestMarkdown(t *testing.T) {
	var got bytes.Buffer
	if err := Markdown(&got); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/settings.md"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestDefaultsOfTheProcess(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TIDEGATE_DRAIN", "7s")
	place(t, part{defaultFile, "rules: r.yaml"})
	place(t, part{"r.yaml", ""})
	c, problems := Load(Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if c.File != defaultFile || !slices.Equal(c.Rules, []string{"r.yaml"}) || c.Drain != 7*time.Second {
		t.Errorf("got %+v", c)
	}
	if c.Store.Memory.Max != memory.DefaultMaxBytes {
		t.Errorf("store.memory.max is %d by default, and the store has %d", c.Store.Memory.Max, memory.DefaultMaxBytes)
	}
	if _, problems := Load(Options{File: "gone.yaml"}); !problems.HasErrors() {
		t.Error("a file that is not there was read")
	}
	if err := c.Write(failing{}); err == nil {
		t.Error("what could not be written was")
	}
}

type failing struct{ io.Writer }

func (failing) Write([]byte) (int, error) { return 0, fs.ErrClosed }

// Nobody is told to remove a variable that another command has.
func TestVariablesOfCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`TIDEGATE_[A-Z_]+`).FindAllString(string(page), -1)
	if len(names) < 10 {
		t.Fatalf("%d variables: was the page moved?", len(names))
	}
	for _, name := range names {
		_, problems := Load(Options{Environ: []string{name + "=x"}, Stat: everywhere, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }})
		if strings.Contains(problems.Error(), "no setting has this variable") {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
