//go:build !unix

package gateway

import "net"

// look is not built here: everything is for the http.Transport.
type look struct{}

func newLook(net.Conn) *look { return nil }

func (*look) silent() bool { return false }

func wasReset(error) bool { return false }

const canLook = false
