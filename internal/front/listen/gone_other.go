//go:build !linux

package listen

import "net"

// canSeeGone says that hasGone does not work on this system: net/http watches clients.
const canSeeGone = false

func hasGone(net.Conn) bool { return false }
