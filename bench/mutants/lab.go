package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// lab is where mutants are built and run.
type lab struct {
	root, dir string
}

type fate string

const (
	dead     fate = "killed"
	survived fate = "SURVIVED"
	misfit   fate = "MISFIT" // it does not apply, or does not compile
)

type result struct {
	mutant mutant
	fate   fate
	took   time.Duration
	output string
}

// row of the table that it is counted in.
func (r result) row() string {
	if r.mutant.lua() {
		return r.mutant.algorithm + " (Lua)"
	}
	return r.mutant.algorithm
}

func newLab(root, dir string) (*lab, error) {
	root, err := filepath.Abs(root)
	return &lab{root, dir}, err
}

// sane runs the suite without any mutant: what fails anyway would kill everything.
func (l *lab) sane(ctx context.Context) error {
	for _, lua := range []bool{false, true} {
		r := l.run(ctx, "sane", "", mutant{file: map[bool]string{true: ".lua", false: ".go"}[lua]})
		if r.fate != survived {
			return fmt.Errorf("the suite fails without a mutant:\n%s", r.output)
		}
	}
	return nil
}

// try applies a mutant and runs the suite on it.
func (l *lab) try(ctx context.Context, n int, m mutant) result {
	path := filepath.Join(l.root, m.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return result{mutant: m, fate: misfit, output: err.Error()}
	}
	edited, err := m.apply(string(source))
	if err != nil {
		return result{mutant: m, fate: misfit, output: err.Error()}
	}
	name := fmt.Sprint("m", n)
	mutated := filepath.Join(l.dir, name+filepath.Ext(m.file))
	overlay := filepath.Join(l.dir, name+".json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	if err == nil {
		err = os.WriteFile(mutated, []byte(edited), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		return result{mutant: m, fate: misfit, output: err.Error()}
	}
	return l.run(ctx, name, overlay, m)
}

// run builds the store that m is in and runs the suite on it, until it fails.
func (l *lab) run(ctx context.Context, name, overlay string, m mutant) result {
	began := time.Now()
	pkg := "store/memory"
	if m.lua() {
		pkg = "store/redis"
	}
	binary := filepath.Join(l.dir, name+filepath.Base(pkg)+".test")
	defer os.Remove(binary)
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, "-overlay", overlay, "./"+pkg)
	build.Dir = l.root
	if out, err := build.CombinedOutput(); err != nil {
		return result{m, misfit, time.Since(began), string(out)}
	}
	test := exec.CommandContext(ctx, binary, "-test.run=^TestConformance$", "-test.failfast", "-test.timeout=2m")
	test.Dir = filepath.Join(l.root, pkg)
	out, err := test.CombinedOutput()
	r := result{m, survived, time.Since(began), last(string(out), 20)}
	if err != nil {
		r.fate = dead
	}
	return r
}

// last returns the last lines of a text.
func last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
