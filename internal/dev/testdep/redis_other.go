//go:build !linux

package testdep

import "syscall"

// dieWithParent is for systems that know it; elsewhere only the end of a test ends
// what it started.
func dieWithParent() *syscall.SysProcAttr { return nil }
