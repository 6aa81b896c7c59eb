//go:build !linux

package testdep

import (
	"syscall"
	"time"
)

// dieWithParent is for systems that know it; elsewhere only the end of a test ends
// what it started.
func dieWithParent() *syscall.SysProcAttr { return nil }

// queued is known on Linux only.
func (r *RedisServer) queued() time.Duration { return 0 }
