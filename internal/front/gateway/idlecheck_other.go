//go:build !unix

package gateway

import "net"

// idleCheck is not available here: all requests go through http.Transport.
type idleCheck struct{}

func newIdleCheck(net.Conn) *idleCheck { return nil }

func (*idleCheck) nothingCame() bool { return false }

func wasReset(error) bool { return false }

const canCheckIdle = false
