//go:build !linux

package main

import "syscall"

// endWithUs can only rely on stop where the kernel does not help.
func endWithUs() *syscall.SysProcAttr { return nil }
