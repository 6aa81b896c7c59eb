package testdep

import "syscall"

// dieWithParent makes a child end when its parent does, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
