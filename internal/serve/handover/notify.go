package handover

import (
	"net"
	"os"
	"strings"
)

// envNotify is the socket on which systemd expects status messages.
const envNotify = "NOTIFY_SOCKET"

// notify sends lines to systemd, if it is there; see sd_notify(3).
func notify(lines ...string) error {
	name := os.Getenv(envNotify)
	if name == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(strings.Join(lines, "\n")))
	return err
}
