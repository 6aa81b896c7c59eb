package main

import (
	"fmt"
	"os"
	"strings"
)

const (
	beginMark = "<!-- chaos:begin -->"
	endMark   = "<!-- chaos:end -->"
)

// replaceBetween puts text between the marks of doc.
func replaceBetween(doc, text string) (string, error) {
	before, rest, ok := strings.Cut(doc, beginMark)
	if !ok {
		return "", fmt.Errorf("no line %s: write it, and %s, where the table belongs", beginMark, endMark)
	}
	_, after, ok := strings.Cut(rest, endMark)
	if !ok {
		return "", fmt.Errorf("no line %s after %s", endMark, beginMark)
	}
	return before + beginMark + "\n" + strings.TrimSpace(text) + "\n" + endMark + after, nil
}

func updateFile(path, text string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := replaceBetween(string(doc), text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}
