package apikey

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse reads a file of the most keys that there may be: what a revocation waits for.
func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString("sha256,name,created,plan\n")
	for i := range MaxRows {
		fmt.Fprintf(&text, "%064x,customer-%d,2026-11-16T05:00:00Z,pro\n", i, i)
	}
	for b.Loop() {
		if t, problems := Parse("keys.csv", []byte(text.String())); t == nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	table := parse(b, "sha256,name,plan\n"+row("tg_4QZ6T3GDXN2ZBQ5O7M6YHS3KJE", "acme", "pro"))
	b.ReportAllocs()
	for b.Loop() {
		if table.Lookup("tg_4QZ6T3GDXN2ZBQ5O7M6YHS3KJE").Attribute("plan") != "pro" {
			b.Fatal()
		}
	}
}
