package main

import "syscall"

// endWithUs has the kernel end a child when this program does, however
// that comes.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
