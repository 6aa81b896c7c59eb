package daemon

import "syscall"

// EndWithUs has the kernel tell a child to end when this program does, however
// that comes.
func EndWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
