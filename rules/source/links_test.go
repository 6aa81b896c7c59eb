package source

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A link to a file elsewhere: followed when its target changes, when it is
// pointed elsewhere, and when a folder on the way is.
func TestLinks(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		p.settle = deadline
		dir := t.TempDir()
		one := filepath.Join(mkdir(t, dir, "one"), "rules.yaml")
		two := filepath.Join(mkdir(t, dir, "two"), "rules.yaml")
		file := filepath.Join(mkdir(t, dir, "etc"), "rules.yaml")
		write(t, one, limit(1))
		write(t, two, limit(2))
		link(t, "../current/rules.yaml", file)
		link(t, "one", filepath.Join(dir, "current"))
		w := start(t, file, p)
		w.wants(1)
		write(t, one, limit(10))
		w.wants(10)
		replace(t, one, limit(11))
		w.wants(11)
		link(t, "two", filepath.Join(dir, "current"))
		w.wants(2)
		write(t, two, limit(20))
		w.wants(20)
		link(t, one, file)
		w.wants(11)
		write(t, one, limit(12))
		w.wants(12)
		w.wantsCounts(6, 0)
	})
}

// configMap is a folder as the kubelet mounts a ConfigMap: its files are links
// through ..data, which is exchanged for another in one step.
type configMap struct {
	t       *testing.T
	dir     string
	version string
}

func newConfigMap(t *testing.T, files map[string]string) *configMap {
	c := &configMap{t: t, dir: mkdir(t, t.TempDir(), "etc", "tidegate")}
	c.update("..2026_11_15_06_00_00.1", files)
	for name := range files {
		link(t, filepath.Join("..data", name), filepath.Join(c.dir, name))
	}
	return c
}

func (c *configMap) update(version string, files map[string]string) {
	c.t.Helper()
	dir := mkdir(c.t, c.dir, version)
	for name, text := range files {
		write(c.t, filepath.Join(dir, name), text)
	}
	do(c.t, os.Symlink(version, filepath.Join(c.dir, "..data_tmp")))
	do(c.t, os.Rename(filepath.Join(c.dir, "..data_tmp"), filepath.Join(c.dir, "..data")))
	if c.version != "" {
		do(c.t, os.RemoveAll(filepath.Join(c.dir, c.version)))
	}
	c.version = version
}

func TestTrap25ConfigMapIsSeenOnce(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		for what, name := range map[string]string{"file": "rules.yaml", "folder": ""} {
			c := newConfigMap(t, map[string]string{"rules.yaml": limit(1), "banned.txt": "mallory"})
			w := start(t, filepath.Join(c.dir, name), p)
			w.wants(1) // and not 2: the folder has the file twice, by its link and below ..data
			for n, version := range []string{"..2026_11_15_07_00_00.2", "..2026_11_15_08_00_00.3", "..2026_11_15_09_00_00.4"} {
				c.update(version, map[string]string{"rules.yaml": limit(n + 2), "banned.txt": "mallory"})
				w.wants(int64(n + 2))
			}
			w.wantsCounts(3, 0)
			if got, want := w.Status().Files, []string{filepath.Join(c.dir, "rules.yaml")}; !slices.Equal(got, want) {
				t.Errorf("%s: files %q, want %q", what, got, want)
			}
		}
	})
}

// The kubelet writes a new version for every change of the ConfigMap, also when
// the rules are the same.
func TestTrap25SameRulesInANewVersionAreNotReloaded(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		c := newConfigMap(t, map[string]string{"rules.yaml": limit(1), "other.txt": "1"})
		w := start(t, filepath.Join(c.dir, "rules.yaml"), p)
		c.update("..2", map[string]string{"rules.yaml": limit(1), "other.txt": "2"})
		c.update("..3", map[string]string{"rules.yaml": limit(1), "other.txt": "3"})
		c.update("..4", map[string]string{"rules.yaml": limit(2), "other.txt": "4"})
		w.wants(2)
		w.wantsCounts(1, 0)
	})
}

func TestFolders(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	do(t, err)
	in := func(name string) string { return filepath.Join(base, name) }
	mkdir(t, in("a/b"))
	mkdir(t, in("v1/deep"))
	mkdir(t, in("v2"))
	write(t, in("a/b/rules.yaml"), "")
	write(t, in("v1/deep/rules.yaml"), "")
	link(t, "v1", in("current"))
	link(t, "../current/deep/rules.yaml", in("a/linked.yaml"))
	link(t, in("a/b"), in("v2/absolute"))
	link(t, "current/deep/..", in("up"))
	link(t, "loop", in("loop"))
	f := func(name string, want ...string) {
		t.Helper()
		for i := range want {
			want[i] = in(want[i])
		}
		got := folders(in(name))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("folders(%s):\n got %q\nwant %q", name, got, want)
		}
	}
	f("a/b/rules.yaml", "a/b")
	f("a/b", "a", "a/b")
	f("a/linked.yaml", "a", "", "v1/deep")
	f("v2/absolute/rules.yaml", "v2", "a/b")
	f("up", "", "v1")
	f("a/missing.yaml", "a")
	f("a/missing/rules.yaml", "a")
	f("loop", "")
}
