// Package marked writes generated text into a page, between two marks:
// <!-- name:begin --> and <!-- name:end -->. Start with [Update].
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Update puts text between the marks of a file.
func Update(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := replace(string(page), name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

func replace(page, name, text string) (string, error) {
	begin, end := "<!-- "+name+":begin -->", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		return "", fmt.Errorf("no line %s: write it, and %s, where it belongs", begin, end)
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("no line %s after %s", end, begin)
	}
	return before + begin + "\n" + strings.TrimSpace(text) + "\n" + end + after, nil
}
