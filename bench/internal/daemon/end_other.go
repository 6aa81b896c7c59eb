//go:build !linux

package daemon

import "syscall"

// EndWithUs can only rely on stop where the kernel does not help.
func EndWithUs() *syscall.SysProcAttr { return nil }
