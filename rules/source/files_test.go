package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules"
)

func TestFolder(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		dir := mkdir(t, t.TempDir(), "rules.d")
		in := func(name string) string { return filepath.Join(dir, name) }
		write(t, in("a.yaml"), rule("a", 1))
		w := start(t, dir, p)
		w.wants(1)
		replace(t, in("b.yml"), rule("b", 20))
		w.wants(21)
		replace(t, in("b.yml"), rule("b", 30))
		w.wants(31)
		do(t, os.Rename(in("b.yml"), in("c.yml")))
		eventually(t, "the new name", func() bool { return slices.Contains(w.Status().Files, in("c.yml")) })
		do(t, os.Remove(in("a.yaml")))
		w.wants(30)
		do(t, os.Rename(dir, dir+".old"))
		w.wantsFailure(30)
		do(t, os.Rename(dir+".old", dir))
		eventually(t, "the folder back", func() bool { return w.Status().LastError == "" })
		replace(t, in("a.yaml"), rule("a", 5))
		w.wants(35)
		w.wantsCounts(5, 1)
		if got, want := w.Status().Files, []string{in("a.yaml"), in("c.yml")}; !slices.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}
	})
}

// What is included, by name or by a pattern that nothing fits at first, and what
// the lists are read from.
func TestIncludedFiles(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		dir := t.TempDir()
		in := func(name string) string { return filepath.Join(dir, name) }
		more := mkdir(t, dir, "more")
		mkdir(t, dir, "lists")
		write(t, in("lists/names.txt"), "alice\n")
		write(t, in("one.yaml"), rule("one", 1))
		text := strings.Replace(withList, "names.txt", "lists/names.txt", 1)
		write(t, in("rules.yaml"), text+"include: [one.yaml, more/*.yaml]\n")
		w := start(t, in("rules.yaml"), p)
		w.wants(1)
		replace(t, in("one.yaml"), rule("one", 2))
		w.wants(2)
		replace(t, filepath.Join(more, "two.yaml"), rule("two", 40))
		w.wants(42)
		replace(t, filepath.Join(more, "two.yaml"), rule("two", 50))
		w.wants(52)

		if !w.bans("alice") || w.bans("bob") {
			t.Errorf("alice %t, bob %t", w.bans("alice"), w.bans("bob"))
		}
		replace(t, in("lists/names.txt"), "bob\n")
		eventually(t, "bob banned", func() bool { return w.bans("bob") && !w.bans("alice") })
		w.wantsCounts(4, 0)

		files := w.Live().Set().Files()
		slices.Sort(files)
		if got := slices.Sorted(slices.Values(w.Status().Files)); !slices.Equal(got, files) {
			t.Errorf("files %q, and the set says %q", got, files)
		}

		// A list that is gone is no reason to let bob in.
		do(t, os.Remove(in("lists/names.txt")))
		w.wantsFailure(52)
		if !w.bans("bob") {
			t.Error("bob is let in")
		}
		replace(t, in("lists/names.txt"), "carol\n")
		eventually(t, "carol banned", func() bool { return w.bans("carol") && !w.bans("bob") })
		w.wantsCounts(5, 1)

		// What is no longer included is no longer followed.
		replace(t, in("rules.yaml"), limit(7))
		w.wants(7)
		if got, want := w.Status().Files, []string{in("rules.yaml")}; !slices.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}
	})
}

// The hash is about what is in the files: not where they are, nor when they came.
func TestHash(t *testing.T) {
	hash := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			write(t, filepath.Join(dir, name), text)
		}
		return start(t, dir, modes["reports"]).Status().Hash
	}
	first := hash(map[string]string{"a.yaml": rule("a", 1), "b.yaml": rule("b", 1)})
	f := func(same bool, files map[string]string) {
		t.Helper()
		if got := hash(files); (got == first) != same || len(got) != 64 {
			t.Errorf("%v: hash %s and %s", files, first, got)
		}
	}
	f(true, map[string]string{"a.yaml": rule("a", 1), "b.yaml": rule("b", 1)})
	f(false, map[string]string{"a.yaml": rule("a", 1), "b.yaml": rule("b", 2)})
	f(false, map[string]string{"a.yaml": rule("a", 1), "c.yaml": rule("b", 1)})
	f(false, map[string]string{"a.yaml": rule("a", 1)})
}

// The key that tokens are verified with is followed as well, and kept out of the
// hash: that may be shown, and a weak secret could be guessed from it.
func TestKeyFile(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		dir := t.TempDir()
		file, key := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "key")
		write(t, key, strings.Repeat("a", 40))
		write(t, file, "version: 1\nidentify: { user: jwt.sub }\nrules:\n  - { name: api, per: user, limits: 10/hour }\n")
		o := Options{}
		o.Config.Trust.JWT = &rules.JWT{Key: key}
		w := startWith(t, file, p, o)
		hash := w.Status().Hash
		if !slices.Contains(w.Status().Files, key) {
			t.Errorf("files %q", w.Status().Files)
		}
		replace(t, key, strings.Repeat("b", 40))
		w.wantsCounts(1, 0)
		if got := w.Status().Hash; got != hash {
			t.Errorf("hash %s after %s", got, hash)
		}
	})
}
