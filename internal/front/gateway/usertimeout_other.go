//go:build !linux

package gateway

import (
	"net"
	"time"
)

// setUserTimeout does nothing: what the kernel holds for a client that does not read
// ends with limits.idle here.
func setUserTimeout(net.Conn, time.Duration) {}
