package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// layerInForce is a layer that can be changed.
type layerInForce struct {
	rules *inForce
	files map[string][]byte
	read  func() // after the files are read; nil means nothing
}

func (l *layerInForce) Layers() ([]EditableLayer, error) {
	is := Editable("layer", &source.Bundle{Main: "rules.yaml", Files: maps.Clone(l.files)})
	if l.read != nil {
		l.read()
	}
	return []EditableLayer{is}, nil
}

func (l *layerInForce) Replace(_ context.Context, _ *EditableLayer, b *source.Bundle) (string, error) {
	l.put(b.Files)
	return "layer", nil
}

// put puts files in force.
func (l *layerInForce) put(files map[string][]byte) {
	l.files = files
	hash := (&source.Bundle{Main: "rules.yaml", Files: files}).Sum() // of those that the rules name
	l.rules.status = source.Status{Hash: fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", files))), Layers: []source.LayerStatus{{Name: "layer", Edition: source.Edition{Hash: hash}}}}
}

// changing is a desk where the files can be changed, beside rules.yaml.
func changing(t *testing.T, files map[string]string) (*desk, *layerInForce) {
	t.Helper()
	l := new(layerInForce)
	d := newDesk(t, few, func(o *Options) {
		o.Apply = l
		o.CompileFiles = func(q *Proposal) (*rules.Set, error) {
			return rules.Parse(q.Main, []byte(q.Files[q.Main]), rules.Config{})
		}
	})
	l.rules = d.rules
	all := map[string][]byte{"rules.yaml": []byte("version: 1\n" + few)}
	for name, text := range files {
		all[name] = []byte(text)
	}
	l.put(all)
	return d, l
}

// ruleFiles are the rules in force as the page gets them.
func (d *desk) ruleFiles(t *testing.T) (is RuleFiles) {
	t.Helper()
	w := d.ask("GET", "/rules/files", "")
	if err := json.Unmarshal(w.Body.Bytes(), &is); w.Code != 200 || err != nil || len(is.Layers) != 1 {
		t.Fatalf("status %d, %v: %.1000s", w.Code, err, w.Body)
	}
	return is
}

func (d *desk) apply(t *testing.T, q NewRules) (status int, said string) {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	w := d.ask("POST", "/rules/apply", string(body))
	return w.Code, w.Body.String()
}

// What a file has in it comes to the page and back as it is, byte by byte. What JSON cannot carry is not
// offered to be changed, does not keep others from being changed, and stays.
func TestFilesComeBack(t *testing.T) {
	testdep.SkipUnderRace(t)
	for name, text := range map[string]string{
		"empty":              "",
		"lf":                 "alice\nbob\n",
		"crlf":               "alice\r\n203.0.113.9\r\n",
		"cr":                 "alice\rbob\r",
		"mixed line ends":    "alice\r\nbob\ncleo\rdan",
		"no end":             "alice\r\nbob",
		"byte order mark":    "\ufeffalice\r\n",
		"tabs":               "alice\t# a friend\n",
		"joined emoji":       "# \U0001F468\u200d\U0001F469\u200d\U0001F467\n",
		"turned around":      "\u202ealice\u2066\n",
		"line separators":    "alice\u2028bob\u2029\u0085\n",
		"control characters": "\x00\x01\x1b[31m\x7f\u009f\n",
		"html":               "<b>&amp;</b> \"\\\n",
		"replacement":        "\ufffd\n",
		"noncharacters":      "\ufffe\U0010ffff\n",
		"5 MiB":              strings.Repeat("203.0.113.9\r\n", 5<<20/13),
		"16 MiB":             strings.Repeat("203.0.113.9\n", 16<<20/12),
	} {
		t.Run(name, func(t *testing.T) {
			d, l := changing(t, map[string]string{"list.txt": text, "other.txt": "x\n"})
			is := d.ruleFiles(t)
			if got := is.Layers[0].Files["list.txt"]; got != text {
				t.Fatalf("%d bytes come to the page, want %d: %.100q, want %.100q", len(got), len(text), got, text)
			}
			q := NewRules{Hash: is.Hash, Files: map[string]string{"list.txt": is.Layers[0].Files["list.txt"] + "eve\n"}, Reason: "a test"}
			if status, said := d.apply(t, q); status != http.StatusOK {
				t.Fatalf("%d %s", status, said)
			}
			if got := string(l.files["list.txt"]); got != text+"eve\n" {
				t.Errorf("%d bytes are in force, want %d: %.100q", len(got), len(text)+4, got)
			}
		})
	}
	for name, text := range map[string]string{"latin-1": "caf\xe9\n", "binary": "\x89PNG\r\n\xff\x00", "cut": "\xf0\x9f\x91", "surrogate": "\xed\xa0\x80"} {
		t.Run(name, func(t *testing.T) {
			d, l := changing(t, map[string]string{"odd": text, "other.txt": "x\n"})
			is := d.ruleFiles(t)
			if got, there := is.Layers[0].Files["odd"]; there || is.Layers[0].Unshown["odd"] != "it is not UTF-8 text" {
				t.Errorf("it is shown as %q; %v", got, is.Layers[0].Unshown)
			}
			status, said := d.apply(t, NewRules{Hash: is.Hash, Files: map[string]string{"odd": "x"}, Reason: "a test"})
			if status != http.StatusConflict || !strings.Contains(said, "it is not UTF-8 text") {
				t.Errorf("%d %s", status, said)
			}
			if status, said := d.apply(t, NewRules{Hash: is.Hash, Files: map[string]string{"other.txt": "y\n"}, Reason: "a test"}); status != http.StatusOK {
				t.Errorf("%d %s", status, said)
			}
			if string(l.files["odd"]) != text || string(l.files["other.txt"]) != "y\n" {
				t.Errorf("in force: %q", l.files)
			}
		})
	}
}

// A reload while the files are read for the page does not let a change that is made from the old ones
// undo what came in force.
func TestFilesAreReadDuringAReload(t *testing.T) {
	d, l := changing(t, map[string]string{"list.txt": "alice\n"})
	theirs := maps.Clone(l.files)
	theirs["list.txt"] = []byte("alice\nbob\n")
	l.read = func() { l.put(theirs) }
	is := d.ruleFiles(t)
	l.read = nil
	status, said := d.apply(t, NewRules{Hash: is.Hash, Files: map[string]string{"list.txt": is.Layers[0].Files["list.txt"] + "eve\n"}, Reason: "a test"})
	if status != http.StatusConflict || string(l.files["list.txt"]) != "alice\nbob\n" {
		t.Errorf("%d %s; in force: %q", status, said, l.files["list.txt"])
	}
}

// unread is a history whose sets cannot be read, for the reason it is.
type unread struct{ err error }

func (unread) History(context.Context) ([]source.Edition, error) { return nil, nil }

func (u unread) Get(context.Context, string) (*source.Bundle, error) { return nil, u.err }

// A set that is not in the history is not found; one that cannot be read now may be there.
func TestBackToWhatCannotBeRead(t *testing.T) {
	f := func(h History, status int, word string) {
		t.Helper()
		d, l := changing(t, nil)
		d.options.History = h
		d.Handler = New(d.options)
		before := string(l.files["rules.yaml"])
		got, said := d.apply(t, NewRules{Hash: d.ruleFiles(t).Hash, BackTo: "aabbcc", Reason: "a test"})
		if got != status || !strings.Contains(said, word) {
			t.Errorf("%d %s, want %d with %q", got, said, status, word)
		}
		if after := string(l.files["rules.yaml"]); after != before {
			t.Errorf("in force: %q", after)
		}
	}
	f(nil, http.StatusNotFound, `no set \"aabbcc\"`)
	f(unread{source.ErrNoRevision}, http.StatusNotFound, `no set \"aabbcc\"`)
	f(unread{errors.New("redis is away")}, http.StatusServiceUnavailable, "redis is away")
}
