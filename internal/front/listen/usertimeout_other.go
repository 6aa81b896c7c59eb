//go:build !linux

package listen

import (
	"net"
	"time"
)

// setUserTimeout does nothing here: a client that does not read a response which fits the
// kernel's buffer keeps its connection until the idle timeout.
func setUserTimeout(net.Conn, time.Duration) {}
