//go:build unix

package testdep

import "syscall"

const pauseSignal, resumeSignal = syscall.SIGSTOP, syscall.SIGCONT
