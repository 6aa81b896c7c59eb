package redis

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// garbler is a proxy before Redis that changes what Redis says.
type garbler struct {
	net.Listener
	target string
	garble atomic.Pointer[func([]byte, *rand.Rand) []byte] // nil means not at all
	seed   atomic.Uint64
	extra  chan []byte // said on the next connection that is quiet
}

func newGarbler(t *testing.T, target string) *garbler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &garbler{Listener: l, target: target, extra: make(chan []byte)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	return g
}

func (g *garbler) serve(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer up.Close()
	done := make(chan struct{})
	defer close(done)
	go func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	}()
	go func() {
		for {
			select {
			case b := <-g.extra:
				_, _ = c.Write(b)
			case <-done:
				return
			}
		}
	}()
	r := rand.New(rand.NewPCG(g.seed.Add(1), 7))
	b := make([]byte, 4096)
	for {
		n, err := up.Read(b)
		if err != nil {
			return
		}
		say := b[:n]
		if f := g.garble.Load(); f != nil {
			say = (*f)(bytes.Clone(say), r)
		}
		if _, err := c.Write(say); err != nil {
			return
		}
	}
}

// garblings are ways to change a piece of what a server says, one time in a few.
var garblings = map[string]func(b []byte, r *rand.Rand) []byte{
	"flipped": func(b []byte, r *rand.Rand) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	},
	"truncated": func(b []byte, r *rand.Rand) []byte { return b[:r.IntN(len(b))] },
	"cut out": func(b []byte, r *rand.Rand) []byte {
		i := r.IntN(len(b))
		return append(b[:i:i], b[min(len(b), i+1+r.IntN(9)):]...)
	},
	"doubled":        func(b []byte, _ *rand.Rand) []byte { return append(b[:len(b):len(b)], b...) },
	"surplus":        func(b []byte, _ *rand.Rand) []byte { return append([]byte("+OK\r\n"), b...) },
	"surplus behind": func(b []byte, _ *rand.Rand) []byte { return append(b[:len(b):len(b)], "+OK\r\n"...) },
	"random": func(b []byte, r *rand.Rand) []byte {
		return insert(b, r, fmt.Sprintf("%c%d\r\n", "+-:$*%~>_#,!=(|;.?"[r.IntN(18)], r.Int64()))
	},
	"huge":       func(b []byte, r *rand.Rand) []byte { return insert(b, r, "$999999999999\r\n") },
	"huge array": func(b []byte, r *rand.Rand) []byte { return insert(b, r, "*999999999\r\n") },
	"less":       func(b []byte, r *rand.Rand) []byte { return insert(b, r, "*-7\r\n%-1\r\n$-9\r\n") },
	"nested":     func(b []byte, r *rand.Rand) []byte { return insert(b, r, strings.Repeat("*1\r\n", 1<<16)) },
	"streamed":   func(b []byte, r *rand.Rand) []byte { return insert(b, r, "$?\r\n;-4\r\n") },
	"pushed":     func(b []byte, r *rand.Rand) []byte { return insert(b, r, ">3\r\n+subscribe\r\n+a\r\n:1\r\n") },
	"swapped": func(b []byte, r *rand.Rand) []byte {
		all := bytes.SplitAfter(b, []byte("\r\n$"))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return bytes.Join(all, nil)
	},
	"moved": func(b []byte, r *rand.Rand) []byte { return insert(b, r, "-MOVED\r\n-ASK\r\n-QUEUED\r\n") },
}

// insert puts text before b, or somewhere into it.
func insert(b []byte, r *rand.Rand, text string) []byte {
	i := 0
	if r.IntN(2) == 0 {
		i = r.IntN(len(b))
	}
	return append(append(b[:i:i], text...), b[i:]...)
}
