package yamltree

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Whatever is in a large file, it is read or refused soon. Some of these take the
// library alone minutes.
func TestLargeFiles(t *testing.T) {
	const size = MaxSize / 8 // what grows with the square shows, and the rest is quick
	fields := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-100; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	f := func(name, src string) {
		t.Helper()
		src = src[:min(len(src), size)]
		start := time.Now()
		_, problems := Parse("big.yaml", []byte(src))
		took := time.Since(start)
		t.Logf("%-20s %8s, %d problems", name, took.Round(time.Millisecond), len(problems))
		if took > 10*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
		if len(problems) > maxProblems {
			t.Errorf("%s: %d problems are told, want at most %d", name, len(problems), maxProblems)
		}
	}
	rep := func(s string) string { return strings.Repeat(s, size/len(s)+1) }
	f("list without values", rep("-\n"))
	f("list in brackets", "["+rep("a,")[:size-2]+"]")
	f("map", fields("k%d: v\n"))
	f("map without values", fields("k%d:\n"))
	f("one key again and again", "{"+rep("k: v, ")[:size-2]+"}")
	f("maps of the largest size", func() string {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString("-\n")
			for range maxFields {
				b.WriteString(" a:\n")
			}
		}
		return b.String()
	}())
	f("dashes", rep("- "))
	f("colons", rep("a: "))
	f("open", rep("["))
	f("open and closed", rep("[]"))
	f("tabs in quotes", `"`+rep("\t"))
	f("ends of lines in quotes", `"`+rep(" \n"))
	f("escapes", `"`+rep(`\"`))
	f("lines of one scalar", "a: "+rep("b\n  "))
	f("lines of a block", "a: >\n"+rep("  b\n"))
	f("less than", rep("<"))
	f("tags", rep("! "))
	f("documents", rep("---\n"))
	f("comments", rep("#\n"))
	f("spaces", "a: "+rep(" "))
	f("empty lines", "a"+rep("\n"))
	f("braces", "["+rep("a{"))
	f("addresses", rep("::1\n"))
	f("words", rep("a b\n"))
	f("quotes", rep("'\n"))
	f("tab lines", rep("\ta: b\n"))
}

func TestBounds(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		root, problems := Parse("f.yaml", []byte(src))
		var got string
		for _, p := range problems {
			got += fmt.Sprintf("%d:%d %s\n", p.Line, p.Col, p.Message)
		}
		if got != want || (root == nil) != (want != "") {
			t.Errorf("%.40q...: got %q and a root: %t, want %q", src, got, root != nil, want)
		}
	}
	deep := "more than 64 levels, one inside of the other\n"
	f(strings.Repeat("[", 64)+strings.Repeat("]", 64), "")
	f(strings.Repeat("[", 65)+strings.Repeat("]", 65), "1:65 "+deep)
	f(strings.Repeat("- ", 64)+"a", "")
	f(strings.Repeat("- ", 65)+"a", "1:129 "+deep)
	f(strings.Repeat("- ", 40)+strings.Repeat("{a: ", 25)+strings.Repeat("}", 25), "1:177 "+deep)
	f(strings.Repeat("- - a\n", 65), "")
	f(strings.Repeat("- a:\n  - b\n", 65), "")
	var steps strings.Builder
	for i := range 65 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	f(steps.String(), "65:65 "+deep)

	var fields strings.Builder
	for i := range maxFields {
		fmt.Fprintf(&fields, "k%d: v\n", i)
	}
	f(fields.String(), "")
	f(fields.String()+"one: more\n", "10001:1 a map of more than 10000 fields\n")
	flow := strings.ReplaceAll(fields.String(), "\n", ", ")
	f("{"+flow+"}", "")
	f("{"+flow+"one: more}", fmt.Sprintf("1:%d a map of more than 10000 fields\n", len(flow)+2))
	f("{"+flow+"one: {}, two: []}", fmt.Sprintf("1:%d a map of more than 10000 fields\n", len(flow)+2))
	f("- [{"+flow+"one:\n   more}, {a: b}]\n- c: d\n", fmt.Sprintf("1:%d a map of more than 10000 fields\n", len(flow)+5))
	f("["+strings.Repeat("a, ", 4*maxFields)+"]", "")
	f("a: b\n#"+strings.Repeat(" ", MaxSize-6), "")
	f("a: b\n#"+strings.Repeat(" ", MaxSize-5), "1:1 the file has 1048577 bytes, and at most 1048576 are read\n")
}
