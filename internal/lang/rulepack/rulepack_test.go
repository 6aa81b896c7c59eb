package rulepack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func equal(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, bytes.Equal)
}

func TestWriteAndRead(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(files map[string][]byte) {
		t.Helper()
		text, err := Write(files)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Read(text); err != nil || !equal(got, files) {
			t.Errorf("%d files, %v; want %d", len(got), err, len(files))
		}
		again, err := Write(maps.Clone(files))
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("the same files make another text, %v", err)
		}
	}
	f(map[string][]byte{})
	f(map[string][]byte{"rules.yaml": nil})
	f(map[string][]byte{"rules.yaml": []byte("rules: []\n"), "lists/ä/" + strings.Repeat("long", 100): {0, 0xff, '\r', '\n'}})
	f(map[string][]byte{"large": make([]byte, MaxFile)})
	many := make(map[string][]byte)
	for i := range MaxFiles {
		many[fmt.Sprint("f", i)] = fmt.Append(nil, i)
	}
	f(many)
}

func TestCheck(t *testing.T) {
	f := func(name string, size int, want string) {
		t.Helper()
		files := map[string][]byte{name: make([]byte, size)}
		if err := Check(files); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %v, want %q", name, err, want)
		}
		if _, err := Write(files); (err == nil) != (want == "") {
			t.Errorf("%.50q is written: %v", name, err)
		}
	}
	f("a/b.yaml", 10, "")
	f("large", MaxFile+1, "larger than 16 MiB")
	for _, name := range []string{"", ".", "..", "../a", "/a", "a/../b", "a//b", "a/", `a\b`, "a\nb", "a\x00b", "a\xff", strings.Repeat("a", maxName+1)} {
		f(name, 0, "is not a name")
	}
	files := make(map[string][]byte)
	for i := range MaxFiles + 1 {
		files[fmt.Sprint(i)] = nil
	}
	if err := Check(files); err == nil {
		t.Error("one file too many is fine")
	}
	files = make(map[string][]byte)
	block := make([]byte, MaxFile)
	for i := range MaxBytes/MaxFile + 1 {
		files[fmt.Sprint(i)] = block
	}
	if err := Check(files); err == nil {
		t.Error("too many bytes are fine")
	}
}

func TestDigest(t *testing.T) {
	seen := make(map[string]string)
	f := func(mains string, files ...string) {
		t.Helper()
		all := make(map[string][]byte)
		for pair := range slices.Chunk(files, 2) {
			all[pair[0]] = []byte(pair[1])
		}
		d, what := Digest(strings.Split(mains, ","), all), fmt.Sprintf("%q %q", mains, files)
		if d != Digest(strings.Split(mains, ","), all) {
			t.Errorf("%s has two", what)
		}
		if other, twice := seen[d]; twice {
			t.Errorf("%s and %s have the same", what, other)
		}
		seen[d] = what
	}
	f("")
	f("a")
	f("", "a", "")
	f("", "a", "b")
	f("", "a", "b", "c", "")
	f("", "a", "", "c", "b")
	f("a", "a", "b")
	f("a,b", "a", "b")
	f("b,a", "a", "b")
	f("a,", "a", "b")
}

// packed is a text with headers of any kind.
func packed(t *testing.T, heads ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for i := range heads {
		if err := w.WriteHeader(&heads[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, heads[i].Size)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.Close(), z.Close()
	return b.Bytes()
}

// Whoever can write where packs are kept can write any of these.
func TestReadTrustsNothing(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(what string, text []byte) {
		t.Helper()
		if files, err := Read(text); err == nil {
			t.Errorf("%s: %d files", what, len(files))
		}
	}
	good := packed(t, tar.Header{Name: "a", Size: 1000})
	if _, err := Read(good); err != nil {
		t.Fatal(err)
	}
	f("nothing", nil)
	f("not compressed", []byte("rules: []"))
	for n := 0; n < len(good); n += 3 {
		f(fmt.Sprint("the first ", n), good[:n])
	}
	f("a folder", packed(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir}))
	f("a link", packed(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	f("elsewhere", packed(t, tar.Header{Name: "../a"}))
	f("twice", packed(t, tar.Header{Name: "a"}, tar.Header{Name: "a"}))
	f("large", packed(t, tar.Header{Name: "a", Size: MaxFile + 1}))
	var many []tar.Header
	for i := range MaxFiles + 1 {
		many = append(many, tar.Header{Name: fmt.Sprint(i)})
	}
	f("many", packed(t, many...))
	many = nil
	for i := range MaxBytes/MaxFile + 1 {
		many = append(many, tar.Header{Name: fmt.Sprint(i), Size: MaxFile})
	}
	f("large together", packed(t, many...))
	var bomb bytes.Buffer // zeros behind the end of the archive
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for range 100 {
		_, _ = z.Write(block)
	}
	_ = z.Close()
	f("a bomb", bomb.Bytes())
}

// Whatever a text is, reading it ends within the bounds, and what is read can be written.
func FuzzRead(f *testing.F) {
	good, err := Write(map[string][]byte{"rules.yaml": []byte("rules: []\n"), "lists/a": []byte("10.0.0.0/8\n")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := Read(text)
		if err != nil {
			return
		}
		again, err := Write(files)
		if err != nil {
			t.Fatalf("%d files were read and cannot be written: %v", len(files), err)
		}
		if back, err := Read(again); err != nil || !equal(back, files) {
			t.Fatalf("written again they are others: %v", err)
		}
	})
}
