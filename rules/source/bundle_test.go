package source

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The same files have the same hash, whether they are on a disk, wherever there, or in a
// bundle; any other content or name has another.
func TestHashIsTheSameEverywhere(t *testing.T) {
	const list = "lists: { l: file %s }\n"
	for name, c := range map[string]struct {
		main  string // "" for a folder
		files map[string]string
	}{
		"a file":                           {"rules.yaml", map[string]string{"rules.yaml": limit(1)}},
		"a folder":                         {"", map[string]string{"b.yaml": rule("b", 1), "a.yml": rule("a", 1)}},
		"a file with more":                 {"rules.yaml", map[string]string{"rules.yaml": limit(1) + "include: more/*.yaml\nlists: { l: file lists/l.txt }\n", "more/x.yaml": rule("x", 2), "lists/l.txt": "a\n"}},
		"a folder and list":                {"", map[string]string{"a.yaml": limit(1) + strings.ReplaceAll(list, "%s", "sub/l.txt"), "sub/l.txt": "a\n"}},
		"a file, list beside its folder":   {"conf/rules.yaml", map[string]string{"conf/rules.yaml": limit(1) + strings.ReplaceAll(list, "%s", "../lists/l.txt"), "lists/l.txt": "a\n"}},
		"a folder, list beside it":         {"conf/", map[string]string{"conf/a.yaml": limit(1) + strings.ReplaceAll(list, "%s", "../lists/l.txt"), "lists/l.txt": "a\n"}},
		"a folder, list two folders above": {"a/b/", map[string]string{"a/b/a.yaml": limit(1) + strings.ReplaceAll(list, "%s", "../../l.txt"), "l.txt": "a\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Bundle{Main: c.main, Files: make(map[string][]byte)}
			dir := t.TempDir()
			for file, text := range c.files {
				b.Files[file] = []byte(text)
				mkdir(t, filepath.Dir(filepath.Join(dir, file)))
				write(t, filepath.Join(dir, file), text)
			}
			// What the rules do not name has no part in it.
			write(t, filepath.Join(dir, "README.md"), "not rules")
			w := start(t, filepath.Join(dir, c.main), modes["polling"])
			sum := w.Status().Hash
			if got := b.Sum(); got != sum {
				t.Errorf("on disk %s, in a bundle %s", sum, got)
			}
			b.Files["README.md"] = []byte("not rules")
			if got := b.Sum(); got != sum {
				t.Errorf("on disk %s, in a bundle with more %s", sum, got)
			}
			read, err := ReadBundle(filepath.Join(dir, c.main))
			do(t, err)
			if read.Hash != sum || read.Sum() != sum || len(read.Files) != len(c.files) {
				t.Errorf("read from disk: %s, %v; want %s", read.Hash, slices.Sorted(maps.Keys(read.Files)), sum)
			}
			handed, err := w.Bundles()
			do(t, err)
			if len(handed) != 1 || handed[0].Sum() != sum || handed[0].Hash != sum {
				t.Errorf("handed on: %v", handed)
			}
			for file := range c.files {
				changed := &Bundle{Main: b.Main, Files: maps.Clone(b.Files)}
				changed.Files[file] = append([]byte("# other\n"), changed.Files[file]...)
				if changed.Sum() == sum {
					t.Errorf("%s has changed, and the hash has not", file)
				}
			}
		})
	}
}

// Rules that name a file by an absolute path cannot be handed on, and say so.
func TestAbsolutePathsAreNotHandedOn(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "l.txt")
	write(t, list, "a\n")
	file := filepath.Join(mkdir(t, dir, "conf"), "rules.yaml")
	write(t, file, limit(1)+"lists: { l: file "+list+" }\n")
	if _, err := ReadBundle(file); err == nil || !strings.Contains(err.Error(), "absolute paths") {
		t.Error(err)
	}
	w := start(t, file, modes["polling"])
	if _, err := w.Bundles(); err == nil || !strings.Contains(err.Error(), "absolute paths") {
		t.Error(err)
	}
	if _, err := ReadBundle(filepath.Join(dir, "gone.yaml")); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestBundleCheck(t *testing.T) {
	many := make(map[string][]byte)
	for i := range MaxFiles + 1 {
		many[strings.Repeat("x", i+1)] = nil
	}
	large := make([]byte, MaxFile)
	for want, b := range map[string]Bundle{
		"no files":       {},
		"at most 1000":   {Files: many},
		"a.yaml has":     {Files: map[string][]byte{"a.yaml": make([]byte, MaxFile+1)}},
		"bytes together": {Files: map[string][]byte{"a": large, "b": large, "c": large, "d": large, "e": {1}}},
		`"../a.yaml"`:    {Files: map[string][]byte{"../a.yaml": nil}},
		`"/etc/passwd"`:  {Files: map[string][]byte{"/etc/passwd": nil}},
		`"a//b"`:         {Files: map[string][]byte{"a//b": nil}},
		`"a\nb"`:         {Files: map[string][]byte{"a\nb": nil}},
		`""`:             {Files: map[string][]byte{"": nil}},
		`"."`:            {Files: map[string][]byte{".": nil}},
		`"../main.yaml"`: {Main: "../main.yaml", Files: map[string][]byte{"a": nil}},
	} {
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %s", err, want)
		}
	}
	for _, main := range []string{"", "a", "b/", "b/c.yaml"} {
		if err := (&Bundle{Main: main, Files: map[string][]byte{"a": large, "b/c.yaml": nil, "..a": nil}}).Check(); err != nil {
			t.Error(err)
		}
	}
}
