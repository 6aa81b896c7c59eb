package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// logsKey is under what a context has the folder that logs are kept in.
type logsKey struct{}

// stages numbers the stages of a run.
var stages atomic.Int64

// keepLogs copies what the nodes of a stage said to the folder that -logs names.
func keepLogs(ctx context.Context, stage string) error {
	to, _ := ctx.Value(logsKey{}).(string)
	if to == "" {
		return nil
	}
	said, err := filepath.Glob(filepath.Join(stage, "node*", "log"))
	if err != nil {
		return err
	}
	i := stages.Add(1)
	for _, file := range said {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%03d-%s.log", i, filepath.Base(filepath.Dir(file)))
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// said counts the lines that a node wrote with one of these words in them, since it had
// written so many bytes.
func (n *node) said(since int64, words ...string) (lines []string) {
	b, _ := os.ReadFile(n.log)
	for line := range strings.Lines(string(b[min(since, int64(len(b))):])) {
		for _, w := range words {
			if strings.Contains(line, w) {
				lines = append(lines, strings.TrimSpace(line))
				break
			}
		}
	}
	return lines
}

// wrote is how many bytes a node has written to its log.
func (n *node) wrote() int64 {
	info, err := os.Stat(n.log)
	if err != nil {
		return 0
	}
	return info.Size()
}
