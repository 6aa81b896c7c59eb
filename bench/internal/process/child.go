package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Ask runs this program again with args, for at most limit, and decodes the
// JSON it prints into answer. What the child says on stderr is passed on.
func Ask(ctx context.Context, limit time.Duration, answer any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it again: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("child %v: %w", args, err)
	}
	defer stdin.Close()
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return fmt.Errorf("child %v: not done within %s", args, limit)
	}
	if err != nil {
		return fmt.Errorf("child %v: %w", args, err)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("child %v: its answer %q: %w", args, out, err)
	}
	return nil
}

// EndWithParent makes a child leave when its standard input ends, which it does
// at the latest with its parent, however that one came to its end.
func EndWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// Answer replies to Ask. A child calls it.
func Answer(v any) error {
	return json.NewEncoder(os.Stdout).Encode(v)
}
