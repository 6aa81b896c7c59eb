package listen

import (
	"sync"
	"time"
)

// goneEvery is how often WhenGone looks.
const goneEvery = 100 * time.Millisecond

// WhenGone calls f if the client closes a connection of HTTP/1 before stop is called. net/http
// notices that only by reading, so not before it has read the body of the request to its end.
func (c *Client) WhenGone(f func()) (stop func()) {
	if c.conn == nil || c.conn.http1 == nil || c.conn.http1.counted == nil {
		return func() {}
	}
	conn := c.conn.http1.counted.Conn
	stopped := make(chan struct{})
	go func() {
		look := time.NewTicker(goneEvery)
		defer look.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-look.C:
			}
			if hasGone(conn) {
				f()
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}
