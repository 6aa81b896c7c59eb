package resp

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// A connection stays as long as it asks, however the moments fall, and is closed when it has
// done nothing for as long as it may, or a sixteenth less.
func TestIdleIsSilence(t *testing.T) {
	for _, idle := range []time.Duration{time.Second, 30 * time.Second, 3 * time.Minute} {
		for _, every := range []time.Duration{idle / 100, idle / 17, idle / 16, idle / 3, idle * 14 / 15} {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{Store: memory.New(), Idle: idle})
				ours, theirs := net.Pipe()
				s.done.Add(1)
				s.open.Add(1)
				go newConn(s, ours).serve()
				reply := make([]byte, 64)
				for start := time.Now(); time.Since(start) < 4*idle; time.Sleep(every) {
					if _, err := io.WriteString(theirs, "PING\r\n"); err != nil {
						t.Fatalf("idle %s: closed %s after it began to ask every %s", idle, time.Since(start), every)
					}
					if _, err := theirs.Read(reply); err != nil {
						t.Fatal(err)
					}
				}
				quiet := time.Now().Add(-every)
				if _, err := theirs.Read(reply); err == nil {
					t.Error("something was sent to somebody who asks nothing")
				}
				if d := time.Since(quiet); d < idle-idle/16 || d > idle {
					t.Errorf("idle %s, asked every %s: closed after %s of silence", idle, every, d)
				}
			})
		}
	}
}
