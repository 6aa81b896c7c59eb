package source

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// given is an origin with one bundle.
type given struct{ b *Bundle }

func (g given) Name() string { return "https://feeder/rules/bundle" }
func (g given) Close() error { return nil }
func (g given) Next(ctx context.Context, have string) (*Bundle, error) {
	if have == g.b.Revision {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return g.b, nil
}

func followAll(t *testing.T, o Options, layers ...Layer) *Watcher {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	w, err := Follow(t.Context(), layers, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func joinedOf(t *testing.T, w *Watcher) *Bundle {
	t.Helper()
	b, err := w.Joined()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	if b.Hash != w.Status().Hash || b.Sum() != b.Hash || b.Revision == "" {
		t.Errorf("the bundle has revision %q and hash %s (%s), and what is in force %s", b.Revision, b.Hash, b.Sum(), w.Status().Hash)
	}
	return b
}

// Whoever follows the bundle of an instance has its rules, with the same hash and the layers in
// the same order, whatever the layers are; and so has whoever follows that one, or starts from
// the copy of it.
func TestJoinedIsTheSame(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	base := write("base/rules.yaml", "version: 1\ninclude: ../common/more.yaml\nlists: { office: file lists/a.txt }\nrules: [{ name: api, per: ip, limits: 5/hour }]\n")
	write("base/lists/a.txt", "192.0.2.0/24\n")
	write("common/more.yaml", "version: 1\nrules: [{ name: more, per: everyone, limits: 9/hour }]\n")
	write("folder/a.yaml", "version: 1\nrules: [{ name: api, per: ip, limits: 7/hour, replace: true }]\n")
	write("folder/b.yaml", "version: 1\nrules: [{ name: b, per: everyone, limits: 7/hour }]\n")
	remote := func(revision string) Layer {
		return Layer{Origin: given{&Bundle{Edition: Edition{Revision: revision}, Main: "x/over.yaml", Files: map[string][]byte{
			"x/over.yaml": []byte("version: 1\ninstances: 4\nrules: [{ name: remote, per: everyone, limits: 3/hour }]\n"), "unused.txt": []byte("x"),
		}}}}
	}
	f := func(rules string, layers ...Layer) {
		t.Helper()
		first := followAll(t, Options{}, layers...)
		if got := fmt.Sprint(first.Live().Set().Rules()); got != rules {
			t.Fatalf("%s, want %s", got, rules)
		}
		b := joinedOf(t, first)
		if len(b.Over) != len(layers)-1 {
			t.Errorf("%d layers, and over the first %q", len(layers), b.Over)
		}
		copies := t.TempDir()
		second := followAll(t, Options{Copy: copies}, Layer{Origin: given{b}})
		if is, want := second.Status(), first.Status(); is.Hash != want.Hash || fmt.Sprint(second.Live().Set().Rules()) != rules {
			t.Errorf("the follower has %v with hash %s, want %v with %s", second.Live().Set().Rules(), is.Hash, rules, want.Hash)
		}
		third := followAll(t, Options{}, Layer{Origin: given{joinedOf(t, second)}})
		if third.Status().Hash != first.Status().Hash {
			t.Error("who follows the follower has another hash")
		}
		kept, err := loadCopy(copies, given{}.Name())
		if err != nil || !kept.sameFiles(b) {
			t.Errorf("the copy: %+v, %v", kept, err)
		}
	}
	f("[api more]", Layer{Name: base})
	f("[remote]", remote("7"))
	f("[api more b]", Layer{Name: base}, Layer{Name: filepath.Join(dir, "folder")})
	f("[api more b remote]", Layer{Name: base}, Layer{Name: filepath.Join(dir, "folder")}, remote("8"))
	f("[remote api more]", remote("9"), Layer{Name: base})
}

// The revision of a single source is that of the source; rules that only hold on this machine
// are not handed on.
func TestJoinedOfOneSource(t *testing.T) {
	b := &Bundle{Edition: Edition{Revision: "42", Author: "ann", Reason: "sale"}, Files: map[string][]byte{"a.yaml": []byte("version: 1\nrules: [{ name: a, per: everyone, limits: 1/hour }]\n")}}
	if is := joinedOf(t, followAll(t, Options{}, Layer{Origin: given{b}})); is.Revision != "42" || is.Author != "ann" {
		t.Errorf("%+v", is.Edition)
	}
	dir := t.TempDir()
	list, rules := filepath.Join(dir, "a.txt"), filepath.Join(dir, "rules.yaml")
	for name, text := range map[string]string{list: "192.0.2.1\n", rules: "version: 1\nlists: { a: file " + list + " }\nrules: [{ name: a, per: everyone, limits: 1/hour }]\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := followAll(t, Options{}, Layer{Name: rules}).Joined(); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("%+v, %v", b, err)
	}
}
