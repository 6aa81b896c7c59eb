package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fault is an edit of a source file that puts a fault back.
type fault struct {
	name     string
	file     string
	old, new string // the old text is there once
}

// faults were all in the code once, or would be easy to put there.
var faults = []fault{
	{
		name: "a coalesced call waits for the call under way, however long that takes",
		file: "internal/chain/node/coalesce.go",
		old:  "(freed || e.now >= c.leave)", new: "freed",
	},
	{
		name: "a node with the narrower version of a limit clamps what is used, and writes it",
		file: "internal/algo/bucket.go",
		old:  "\tif level > l.Tau {\n\t\treturn s, now, level\n\t}\n", new: "\tlevel = min(level, l.Tau)\n",
	},
	{
		name: "the store is not told that what it grants is used later, and holds nothing back",
		file: "internal/chain/node/ahead.go",
		old:  "Lease: life", new: "Lease: 0 * life",
	},
	{
		name: "every node has the whole limit while Redis is away",
		file: "internal/chain/node/share.go",
		old:  "int64(min(max(n.o.Instances(), 1), maxNodes))", new: "int64(min(max(n.o.Instances(), 1), 1))",
	},
}

// build builds the command, with a fault or without.
func (c *campaign) build(ctx context.Context, name string, f *fault) (string, error) {
	binary := filepath.Join(c.dir, name)
	args := []string{"build", "-o", binary}
	if f != nil {
		overlay, err := c.overlay(name, f)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/tidegate")...)
	cmd.Dir = c.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// overlay writes the edited file, and what tells the compiler to read it instead.
func (c *campaign) overlay(name string, f *fault) (string, error) {
	path := filepath.Join(c.root, f.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	edited, err := f.apply(string(source))
	if err != nil {
		return "", err
	}
	replaced := filepath.Join(c.dir, name+".go")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replaced}})
	if err == nil {
		err = os.WriteFile(replaced, []byte(edited), 0o600)
	}
	overlay := filepath.Join(c.dir, name+".json")
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	return overlay, err
}

func (f *fault) apply(source string) (string, error) {
	if n := strings.Count(source, f.old); n != 1 {
		return "", fmt.Errorf("%s has the text of the fault %q %d times, want once", f.file, f.name, n)
	}
	return strings.Replace(source, f.old, f.new, 1), nil
}

// enough is how many decisions a fault may stay unnoticed for.
const enough = 10_000_000

// find runs scenarios with a fault until one breaks a promise, and prints its seed.
func (c *campaign) find(ctx context.Context, f *fault) error {
	binary, err := c.build(ctx, "faulty", f)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "sim: put in: %s\n", f.name)
	t, out, err := simulate(ctx, binary, c.seed, enough)
	seed := broken.FindStringSubmatch(out)
	if err == nil || seed == nil {
		return fmt.Errorf("%d decisions did not show the fault %q: %v\n%s", t.decisions, f.name, err, out)
	}
	fmt.Printf("found with seed %s: %s\n", seed[1], f.name)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "BROKEN") {
			fmt.Print("  ", line)
			break
		}
	}
	return nil
}
