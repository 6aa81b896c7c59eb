//go:build !linux

package served

import "syscall"

// endWithUs can only rely on stop where the kernel does not help.
func endWithUs() *syscall.SysProcAttr { return nil }
