package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// logsKey is the context key of the folder that -logs names.
type logsKey struct{}

// stages counts the stages of a run, to number their logs.
var stages atomic.Int64

// keepLogs copies the logs of the nodes of a stage to the folder that -logs names.
func keepLogs(ctx context.Context, stage string) error {
	to, _ := ctx.Value(logsKey{}).(string)
	if to == "" {
		return nil
	}
	printed, err := filepath.Glob(filepath.Join(stage, "node*", "log"))
	if err != nil {
		return err
	}
	i := stages.Add(1)
	for _, file := range printed {
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

// changes is how often a node wrote each line about its store, or about one server of it.
type changes map[string]int

// lines returns how many lines there are in all.
func (c changes) lines() (n int) {
	for _, times := range c {
		n += times
	}
	return n
}

// logChanges counts what a node wrote about its store after the first since bytes of its log.
func (n *node) logChanges(since int64) changes {
	b, _ := os.ReadFile(n.log)
	all := changes{}
	for line := range bytes.Lines(b[min(since, int64(len(b))):]) {
		var l struct{ Msg, Server string }
		if json.Unmarshal(line, &l) == nil && strings.Contains(l.Msg, "store") {
			all[strings.TrimSpace(l.Msg+" "+l.Server)]++
		}
	}
	return all
}

// wrote returns how many bytes a node has written to its log.
func (n *node) wrote() int64 {
	info, err := os.Stat(n.log)
	if err != nil {
		return 0
	}
	return info.Size()
}
