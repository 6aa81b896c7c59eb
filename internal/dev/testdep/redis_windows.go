package testdep

import "syscall"

// A program cannot be paused there, and whoever tries is told so.
const pauseSignal, resumeSignal = syscall.Signal(-1), syscall.Signal(-1)
