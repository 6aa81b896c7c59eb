//go:build !unix

package handover

import (
	"errors"
	"net"
	"os"
)

// UpgradeSignals is empty on this system.
var UpgradeSignals []os.Signal

func openPipe(fd int) *os.File { return os.NewFile(uintptr(fd), "handover") }

func share(net.Listener) (*os.File, error) {
	return nil, errors.New("this system does not pass sockets on")
}
