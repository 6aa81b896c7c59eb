//go:build unix

package logsink

import "syscall"

// nonblocking has a file that can make its writer wait do so in the runtime.
const nonblocking = syscall.O_NONBLOCK
