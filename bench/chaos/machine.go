package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine describes the machine: figures are worth nothing without it.
func machine() string {
	cpu := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	redis := "Redis"
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		for _, word := range strings.Fields(string(out)) {
			if version, ok := strings.CutPrefix(word, "v="); ok {
				redis += " " + version
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s, %s, everything on this one machine", cpu, runtime.NumCPU(), runtime.Version(), redis)
}
