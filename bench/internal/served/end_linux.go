package served

import "syscall"

// endWithUs has the kernel tell a child to end when this program does, however
// that comes.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
