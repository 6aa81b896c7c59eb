package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine is what figures are worth nothing without.
type machine struct {
	cpu   string
	cores int
	goes  string
}

func thisMachine() machine {
	m := machine{cpu: runtime.GOARCH, cores: runtime.NumCPU(), goes: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s on %s/%s", m.cpu, m.cores, m.goes, runtime.GOOS, runtime.GOARCH)
}
