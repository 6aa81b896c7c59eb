package redis

import (
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

// maxSecret is how long a file with a password may be.
const maxSecret = 64 << 10

// readPassword reads the password that stands alone in a file.
func readPassword(file string) (string, error) {
	text, err := bounded.ReadFile(file, maxSecret)
	if err != nil {
		return "", fmt.Errorf("read the password of Redis: %w", err)
	}
	password := strings.TrimSpace(string(text))
	if password == "" {
		return "", fmt.Errorf("the password of Redis is missing: %s is empty", file)
	}
	return password, nil
}

// The client asks for credentials by address alone, and has one function for Redis and for
// Sentinels. Sentinels are recognized by a resolver of their own, which resolves as any other.
var sentinelResolver = &net.Resolver{}

// sentinelConn is a connection to a Sentinel.
type sentinelConn struct{ net.Conn }

type sentinelAddr struct{ net.Addr }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

// credentials returns what the client calls for every connection that it makes, so that a
// changed password is used from the next one on. While the file cannot be read, the last
// password is used. Without a PasswordFile it returns nil.
func (c *Config) credentials(d *dialer) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	if c.PasswordFile == "" {
		return nil
	}
	user, file := c.Username, c.PasswordFile
	sentinel := rueidis.AuthCredentials{Username: c.SentinelUsername, Password: c.SentinelPassword}
	d.password.Store(&c.Password)
	return func(to rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		if _, ok := to.Address.(sentinelAddr); ok {
			return sentinel, nil
		}
		password, err := readPassword(file)
		if err == nil {
			d.password.Store(&password)
		} else {
			d.report(to.Address.String(), err)
		}
		return rueidis.AuthCredentials{Username: user, Password: *d.password.Load()}, nil
	}
}
