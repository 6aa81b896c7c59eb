//go:build !unix

package redis

import "net"

// peek is not built here: only what was read is heard.
type peek struct{}

func newPeek(net.Conn) *peek { return nil }

func (*peek) unread() bool { return false }
