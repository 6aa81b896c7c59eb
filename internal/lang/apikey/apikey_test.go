package apikey

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// row is a line for a key.
func row(key string, cells ...string) string {
	return Sum(key) + "," + strings.Join(cells, ",") + "\n"
}

func parse(t testing.TB, text string) *Table {
	t.Helper()
	table, problems := Parse("keys.csv", []byte(text))
	if table == nil {
		t.Fatal(problems)
	}
	return table
}

func TestLookup(t *testing.T) {
	f := func(text, key, want string) {
		t.Helper()
		got := "none"
		if r := parse(t, text).Lookup(key); r != nil {
			got = fmt.Sprintf("%s plan=%s region=%s", r.Name, r.Attribute("plan"), r.Attribute("region"))
		}
		if got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
	text := "sha256,name,created,plan\n" + row("k1", "acme", "2026-01-01", "pro") + row("k2", "beta", "", "")
	f(text, "k1", "acme plan=pro region=")
	f(text, "k2", "beta plan= region=")
	f(text, "k3", "none")
	f(text, "", "none")
	f(text, "K1", "none")
	f(text, "k1 ", "none")
	f(text, Sum("k1"), "none") // whoever reads the file has no key
	f("sha256,name\n"+row("", "nobody"), "", "none")

	// The order of columns, short lines, comments, quotes, spaces and line ends are up to the author.
	f("\ufeff# ours\r\nplan, name ,sha256\r\n\r\npro, acme , "+Sum("k1")+"\r\n", "k1", "acme plan=pro region=")
	f("sha256,name,plan\n"+Sum("k1")+",acme\n", "k1", "acme plan= region=")
	f("sha256,name,plan\n"+strings.ToUpper(Sum("k1"))+`,"acme, Inc.","a ""b"""`, "k1", `acme, Inc. plan=a "b" region=`)

	long := strings.Repeat("x", MaxKey)
	f("sha256,name\n"+row(long, "long"), long, "long plan= region=")
	f("sha256,name\n"+row(long+"x", "longer"), long+"x", "none")
}

func TestMistakes(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		table, problems := Parse("keys.csv", []byte(text))
		if table != nil || !problems.HasErrors() {
			t.Errorf("%.100q is taken", text)
			return
		}
		got := problems.Error()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%.100q:\n%s\nwant %q", text, got, w)
			}
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("a key is shown:\n%s", got)
		}
	}
	const header = "sha256,name,plan\n"
	f("", "keys.csv: error: the file is empty", "sha256,name,created,plan")
	f("\n# only a comment\n", "the file is empty")
	f("name,plan\nacme,pro\n", "keys.csv:1:1: error: there is no column `sha256`")
	f("# x\nsha256,plan\n", "keys.csv:2:1: error: there is no column `name`")
	f("sha256;name;plan\n", "commas, not by semicolons")
	f("sha256,name,plan,plan\n", "two columns `plan`")
	f("sha256,name,sha256\n", "two columns `sha256`")
	f("sha256,name,a b\n", "column 3 cannot be used")
	f("sha256,name,\n", "column 3 cannot be used")
	f("sha256,name"+strings.Repeat(",a", 40)+"\n", "42 columns")
	// A key that somebody wrote where its hash belongs is not shown.
	f(header+"hunter2hunter2,acme,pro\n", "keys.csv:2:1: error: this is not a SHA-256")
	f(header+"hunter2"+strings.Repeat("0", 57)+",acme,pro\n", "keys.csv:2:1: error: this is not a SHA-256")
	f(header+Sum("a")+"0,acme,pro\n", "not a SHA-256")
	f(header+",acme,pro\n", "not a SHA-256")
	f(header+row("a", "", "pro"), "keys.csv:2:1: error: the key has no name")
	f(header+row("a"), "the key has no name")
	f("name,sha256\nacme\n", "keys.csv:2:1: error: the line has no SHA-256")
	// All at once, each with its line.
	f(header+row("a", "acme", "x")+"\n"+row("b", "acme", "x")+row("a", "other", "x")+row("c", "d", "e", "f"),
		"keys.csv:4:1: error: the name `acme` is already in line 2",
		"keys.csv:5:1: error: the same key is already in line 2",
		"keys.csv:6:", "4 values for 3 columns")
	f(header+row("a", `ac"me`, "x"), "keys.csv:2:", "not CSV")
	f(header+row("a", `"acme`, "x"), "not CSV")
	f(header+row("a", "\"ac\nme\"", "x"), "control character or a line end")
	f(header+row("a", "ac\x00me", "x"), "control character")
	f(header+row("a", "acme", "\xff"), "UTF-8")
	// Bounds.
	f(header+row("a", strings.Repeat("n", maxName+1), "x"), "longer than 128 bytes")
	f(header+row("a", "acme", strings.Repeat("n", maxCell+1)), "longer than 256 bytes")
	f(header+"#"+strings.Repeat("n", maxLine)+"\n", "keys.csv:2:1: error: the line is longer than 8192 bytes")
	f(strings.Repeat("\n", MaxFile+1), "larger than 16 MiB")
	var many strings.Builder
	many.WriteString("sha256,name\n")
	for i := range MaxRows + 1 {
		fmt.Fprintf(&many, "%064x,n%d\n", i, i)
	}
	f(many.String(), fmt.Sprintf("keys.csv:%d:1: error: there are more than %d keys", MaxRows+2, MaxRows))
	// A file of mistakes alone does not make an endless message.
	f(header+strings.Repeat("x,y,z\n", 5000), "more")
}

func TestAddAndRevoke(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.csv")
	now := time.Date(2026, 11, 16, 5, 0, 0, 0, time.UTC)
	add := func(key, name, want string, attributes ...Attribute) {
		t.Helper()
		if err := Add(file, key, name, now, attributes); err != nil && want == "" || err == nil && want != "" || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("add %s: %v, want %q", name, err, want)
		}
	}
	plan := func(v string) Attribute { return Attribute{"plan", v} }
	add("k1", "acme", "", plan("pro"))
	add("k2", "beta", "", plan(`odd, "plan"`))
	add("k3", "gamma", "")
	add("k4", "acme", "there is a key of that name", plan("x"))
	add("k1", "other", "the same key is already in line 2")
	add("k5", "delta", "no column `region`: add it to the end of the first line, `sha256,name,created,plan,region`", Attribute{"region", "eu"})
	add("k6", " ", "the key has no name")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const created = "2026-11-16T05:00:00Z"
	want := "sha256,name,created,plan\n" + row("k1", "acme", created, "pro") + row("k2", "beta", created, `"odd, ""plan"""`) + row("k3", "gamma", created, "")
	if string(text) != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}

	// What is not about the key stays as it was, byte for byte.
	odd := "# ours\r\nname,sha256 , plan\r\n\r\nold," + Sum("k0") + ",x\r\n# end"
	if err := os.WriteFile(file, []byte(odd), 0o644); err != nil {
		t.Fatal(err)
	}
	add("k1", "acme", "", plan("pro"))
	text, _ = os.ReadFile(file)
	if want := odd + "\nacme," + Sum("k1") + ",pro\n"; string(text) != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o after a file that everybody could read", info.Mode().Perm())
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Revoke(file, "old"); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(file)
	if want := "# ours\r\nname,sha256 , plan\r\n\r\n# end\nacme," + Sum("k1") + ",pro\n"; string(text) != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %o: the group of the gateway could read it, and nobody else", info.Mode().Perm())
	}
	if err := Revoke(file, "acmee"); err == nil || !strings.Contains(err.Error(), `did you mean "acme"`) {
		t.Errorf("%v", err)
	}
	if err := Revoke(file+"x", "acme"); err == nil || !strings.Contains(err.Error(), "file does not exist") {
		t.Errorf("%v", err)
	}
	// A broken file is not written again.
	broken := "sha256,name\nx,y\n"
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	add("k9", "new", "not a SHA-256")
	if text, _ := os.ReadFile(file); string(text) != broken {
		t.Errorf("got %q", text)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A link to the file stays a link.
func TestAddThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "keys.csv"), filepath.Join(dir, "link.csv")
	if err := Add(file, "k1", "acme", time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := Add(link, "k2", "beta", time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if table, err := ReadFile(file); err != nil || table.Len() != 2 {
		t.Errorf("%v, %v", table, err)
	}
}

// Many who add and revoke at once lose nothing, and whoever reads meanwhile sees a whole file.
func TestAddAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.csv")
	if err := Add(file, "first", "first", time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	const writers, each = 8, 10
	for w := range writers {
		all.Go(func() {
			for i := range each {
				name := fmt.Sprintf("k%d-%d", w, i)
				if err := Add(file, name, name, time.Now(), nil); err != nil {
					t.Error(err)
				}
				if i%2 == 1 {
					if err := Revoke(file, name); err != nil {
						t.Error(err)
					}
				}
				if _, err := ReadFile(file); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	table, err := ReadFile(file)
	if err != nil || table.Len() != 1+writers*each/2 {
		t.Errorf("%d keys, %v; want %d", table.Len(), err, 1+writers*each/2)
	}
}

func TestCompare(t *testing.T) {
	was := parse(t, "sha256,name,plan,region\n"+row("k1", "acme", "pro", "eu")+row("k2", "beta", "free", "")+row("k3", "gone", "", "")+row("k4", "same", "x", ""))
	now := parse(t, "sha256,name,plan\n"+row("k5", "new", "free")+row("k4", "same", "x")+row("k1", "acme", "free")+row("k6", "beta", "free"))
	got := fmt.Sprint(Compare(was, now))
	want := "{[new] [gone] [acme: plan free, was pro; region none, was eu beta: another key]}"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c := Compare(nil, now); len(c.Added) != 4 || len(c.Removed)+len(c.Changed) > 0 {
		t.Errorf("%v", c)
	}
}

func TestFrom(t *testing.T) {
	f := func(text, value, key, header string) {
		t.Helper()
		from, err := ParseFrom(text)
		if err != nil || from.Key(value) != key || from.Header != header {
			t.Errorf("%s: %+v, %v; the key of %q is %q", text, from, err, value, from.Key(value))
		}
	}
	f("", "abc", "abc", "X-Api-Key")
	f("client header x-key", "Bearer abc", "Bearer abc", "X-Key")
	f("header X-Key", "abc", "abc", "X-Key")
	f("bearer", "Bearer abc", "abc", "Authorization")
	f("bearer", "bearer   abc", "abc", "Authorization")
	f("bearer", "Basic abc", "", "Authorization")
	f("bearer", "abc", "", "Authorization")
	f("basic.user", "abc", "abc", "Authorization")
	f(" query  key ", "abc", "abc", "")
	f("cookie key", "abc", "abc", "Cookie")
	for _, text := range []string{"X-Api-Key", "client X-Api-Key", "ip", "jwt.sub", "body.key", "client header X Key", "header X:Y", "everyone", "bearer x"} {
		if from, err := ParseFrom(text); err == nil {
			t.Errorf("%s is taken for %+v", text, from)
		}
	}
}

func TestNewKeysDiffer(t *testing.T) {
	a, b := New(), New()
	if a == b || len(a) < 29 || !strings.HasPrefix(a, "tg_") {
		t.Errorf("%s, %s", a, b)
	}
}

func TestAllocLookup(t *testing.T) {
	table := parse(t, "sha256,name,plan\n"+row("k1", "acme", "pro"))
	if n := testing.AllocsPerRun(100, func() {
		if table.Lookup("k1").Attribute("plan") != "pro" || table.Lookup("k2") != nil {
			t.Fail()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sha256,name,plan\n" + row("k1", "acme", "pro"))
	f.Add("# x\n\"sha256\",name\n" + Sum("k") + ",\"a,\"\"b\"\n")
	f.Add("name,sha256\n\n,\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, problems := Parse("keys.csv", []byte(text))
		if (table == nil) != problems.HasErrors() {
			t.Fatalf("%v with %v", table, problems)
		}
		if table == nil {
			return
		}
		lines := strings.Count(text, "\n") + 1
		for _, r := range table.rows {
			if r.Name == "" || r.line < 2 || r.line > lines || len(r.values) != len(table.columns) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A name that begins with # is a key in a file whose first column is the name, and not a comment.
func TestAddNameLikeAComment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.csv")
	if err := os.WriteFile(file, []byte("name,sha256,plan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"#acme", "#", `#a,b`, `#"a"`, "a#b"} {
		key := New()
		if err := Add(file, key, name, time.Now(), []Attribute{{"plan", "pro"}}); err != nil {
			t.Fatal(err)
		}
		table, err := ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if r := table.Lookup(key); r == nil || r.Name != name || r.Attribute("plan") != "pro" {
			t.Errorf("%s: %+v", name, r)
		}
		if err := Revoke(file, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
