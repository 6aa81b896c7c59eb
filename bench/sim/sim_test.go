package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Every fault still fits the code, and changes it.
func TestFaultsFit(t *testing.T) {
	for _, f := range faults {
		for _, e := range f.edits {
			source, err := os.ReadFile(filepath.Join("..", "..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if edited, err := e.apply(string(source)); err != nil || edited == string(source) {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
}

func TestOutputIsUnderstood(t *testing.T) {
	if m := done.FindStringSubmatch("sim: 12 decisions in 3 scenarios, seeds 1 to 3, in 1s: no promise broken\n"); m == nil || m[1] != "12" || m[2] != "3" {
		t.Errorf("%q", m)
	}
	if m := broken.FindStringSubmatch("Run it again: tidegate sim --random 1 --seed 77\n"); m == nil || m[1] != "77" {
		t.Errorf("%q", m)
	}
}
