package yamltree

import (
	"strings"
	"testing"
)

// What an editor would not keep in a file of testdata.
func TestBytes(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		root, problems := Parse("f.yaml", []byte(src))
		got := dump(root)
		if len(problems) > 0 {
			got += problems.Error() + "\n"
		}
		if got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", src, got, want)
		}
	}
	tree := `1:1+1 map
  1:1+1 "a"
    = 1:4+5 "x\ty" quoted
  2:1+1 "b"
    = 3:3+1 list
      - 3:5+1 "c"
  4:1+1 "d"
    = 4:4+1 "e\nf\n"
`
	text := "a: \"x\ty\"\nb:\n  - c\nd: |\n  e\n  f\n"
	f(text, tree)
	f("\ufeff"+text, tree)
	f(strings.ReplaceAll(text, "\n", "\r\n"), tree)
	f(strings.ReplaceAll(text, "\n", "\r"), tree)
	f("a: \"b\r\n  c\"\r\n", "1:1+1 map\n  1:1+1 \"a\"\n    = 1:4+2 \"b c\" quoted\n")
	f("a:\tb\t# c\t\n", "1:1+1 map\n  1:1+1 \"a\"\n    = 1:4+1 \"b\"\n")
	f("a: |\n  b", "1:1+1 map\n  1:1+1 \"a\"\n    = 1:4+1 \"b\"\n")

	f("", "nothing\nf.yaml:1:1: error: the file is empty, or has only comments\n")
	f("\ufeff", "nothing\nf.yaml:1:1: error: the file is empty, or has only comments\n")
	f("a: b\xff\n", "nothing\nf.yaml:1:5: error: bytes that are not UTF-8\n    a: b\ufffd\n        ^\n  save the file as UTF-8\n")
	f("안: \ufffd\xc3\n", "nothing\nf.yaml:1:5: error: bytes that are not UTF-8\n    안: \ufffd\ufffd\n         ^\n  save the file as UTF-8\n")
	f("\xff\xfea\x00", "nothing\nf.yaml:1:1: error: the file is in UTF-16\n  save it as UTF-8\n")
	f("a: b\n\x00\x00", "nothing\nf.yaml:2:1: error: a NUL byte\n    \ufffd\ufffd\n    ^\n  delete it; was the file written to its end?\n")
	f("a: \x1b[0m", "nothing\nf.yaml:1:4: error: a control character, U+001B\n    a: \ufffd[0m\n       ^\n  delete it, or write \"\\x1b\" in double quotes\n")
	f("a: b\ufeff", "nothing\nf.yaml:1:5: error: a byte order mark inside of the file\n    a: b\ufffd\n        ^\n  delete it; it may stand at the very beginning only\n")
	f("\u00a0a: b", "1:1+2 map\n  1:1+2 \"\\u00a0a\"\n    = 1:5+1 \"b\"\nf.yaml:1:1: error: an invisible character, U+00A0\n    \u00a0a: b\n    ^\n  write spaces in its place; it was probably pasted\n")
	f("a:\n\tb: c\n \td: e\n-\tf: g\n", "nothing\nf.yaml:2:1: error: a tab in the indentation\n      b: c\n    ^^\n  indent with spaces, two for each level; 3 lines have tabs\n")
	f("a: [\n\tb]\n", "nothing\nf.yaml:2:1: error: a tab in the indentation\n      b]\n    ^^\n  indent with spaces, two for each level\n")
	f("a: b\n  \tc\n", "nothing\nf.yaml:2:3: error: a tab in the indentation\n      c\n    ^^\n  indent with spaces, two for each level\n")
	f("a: |\n  b\n\tc\n", "nothing\nf.yaml:3:1: error: a tab in the indentation\n      c\n    ^^\n  indent with spaces, two for each level\n")
}

func TestEscapes(t *testing.T) {
	f := func(src, want, problem string) {
		t.Helper()
		root, problems := Parse("f.yaml", []byte(src))
		if root == nil || root.Value != want {
			t.Errorf("%s: got %+v, want %q", src, root, want)
		}
		if len(problems) == 0 && problem == "" {
			return
		}
		if len(problems) != 1 || problems[0].Message != problem {
			t.Errorf("%s: got problems %v, want %q", src, problems, problem)
		}
	}
	f(`"\0\a\b\t\n\v\f\r\e\ \"\/\\\N\_\L\P"`, "\x00\a\b\t\n\v\f\r\x1b \"/\\\u0085\u00a0\u2028\u2029", "")
	f(`"\x41\u00e9\U0001f600"`, "Aé😀", "")
	f(`"\ud83d\ude00"`, "😀", "")
	f(`"\ud83d"`, "\ufffd", "an escape that stands for no character")
	f(`"\ud83d\u0041"`, "\ufffd", "an escape that stands for no character")
	f(`"\UFFFFFFFF"`, `\UFFFFFFFF`, "`\\U` is not an escape of a text in double quotes")
	f(`"\x4"`, `\x4`, "`\\x` is not an escape of a text in double quotes")
	f(`"\xzz"`, `\xzz`, "`\\x` is not an escape of a text in double quotes")
	f(`"\x+1"`, `\x+1`, "`\\x` is not an escape of a text in double quotes")
	f(`"\d"`, `\d`, "`\\d` is not an escape of a text in double quotes")
	f("\"a  \n  b\\\n  c \\\n\n  d\\  \n e\"", "a bc \nd  e", "")
	f("'a  \n\n  b'", "a\nb", "")
}

// What begins like an address with a port and is none is told, within braces and without.
func TestNoAddress(t *testing.T) {
	for _, text := range []string{"[::1]:5m", "[::1]:99999", "[::1]:80x", "[::1]:", "[::1]:" + strings.Repeat("0", 90), "[::g]:80", "[1:2]:80"} {
		for _, src := range []string{"a: " + text, "a: { b: " + text + " }", "a: { b: " + text + ", c: d }", "a: [" + text + "]"} {
			if _, problems := Parse("f.yaml", []byte(src+"\n")); !problems.HasErrors() {
				t.Errorf("%s is fine", src)
			}
		}
	}
	if _, problems := Parse("f.yaml", []byte("a: { b: [::1]:80 }\n")); len(problems) != 1 || !strings.Contains(problems.Error(), "has no quotes") {
		t.Errorf("an address: %v", problems)
	}
}
