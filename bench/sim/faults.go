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

// fault is what puts a fault back: some edits of the code. To add one, append it to faults; the
// rest follows from the list.
type fault struct {
	name  string
	edits []edit
}

// edit replaces a text that is in a file once.
type edit struct{ file, old, new string }

// faults were all in the code once, or would be easy to put there.
var faults = []fault{
	{"a coalesced call waits for the call under way, however long that takes", []edit{
		{"internal/chain/node/coalesce.go", "(freed || e.now >= c.leave)", "freed"},
	}},
	{"a node with the narrower version of a limit clamps what is used, and writes it", []edit{
		{"internal/algo/bucket.go", "\tif level > l.Tau {\n\t\treturn s, now, level\n\t}\n", "\tlevel = min(level, l.Tau)\n"},
	}},
	{"the store is not told that what it grants is used later, and holds nothing back", []edit{
		{"internal/chain/node/ahead.go", "Lease: life", "Lease: 0 * life"},
	}},
	{"every node has the whole limit while Redis is away", []edit{
		{"internal/chain/node/share.go", "max(n.o.Instances(), 1), share.MaxInstances", "1, share.MaxInstances"},
	}},
	{"while Redis is away, every node admits a request in every window", []edit{
		{"internal/chain/node/pace.go", "if nodes == 1 || c.Advisory", "if nodes >= 1 || c.Advisory"},
	}},
	{"what was admitted without Redis is not charged to it afterwards", []edit{
		{"internal/chain/node/posting.go", "n.charge(ctx, told) })", "nil })\n\t_ = told"},
	}},
	{"instances that exchange counts do not count what others have", []edit{
		{"internal/chain/eventual/counter.go", ".others += p.Count", ".others += 0 * p.Count"},
	}},
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

// overlay writes the edited files, and what tells the compiler to read them instead.
func (c *campaign) overlay(name string, f *fault) (string, error) {
	replace := map[string]string{}
	for i, e := range f.edits {
		path := filepath.Join(c.root, e.file)
		from := path
		if replace[path] != "" { // it was edited before
			from = replace[path]
		}
		source, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		edited, err := e.apply(string(source))
		if err != nil {
			return "", fmt.Errorf("fault %q: %w", f.name, err)
		}
		replace[path] = filepath.Join(c.dir, fmt.Sprint(name, i, ".go"))
		if err := os.WriteFile(replace[path], []byte(edited), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(c.dir, name+".json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

func (e *edit) apply(source string) (string, error) {
	if n := strings.Count(source, e.old); n != 1 {
		return "", fmt.Errorf("%s has the text %q %d times, want once", e.file, e.old, n)
	}
	return strings.Replace(source, e.old, e.new, 1), nil
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
