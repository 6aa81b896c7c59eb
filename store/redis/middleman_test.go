package redis

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// middleman stands before a Redis and answers some commands in its place, one after the
// other.
type middleman struct {
	addr   string
	answer func(command []string) (reply string) // "" means Redis answers

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newMiddleman(t *testing.T, target string, answer func(command []string) string) *middleman {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &middleman{addr: l.Addr().String(), answer: answer, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.Close()
		m.hangUp()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m.mu.Lock()
			m.conns[c] = true
			m.mu.Unlock()
			go m.serve(c, target)
		}
	}()
	return m
}

// hangUp closes all connections.
func (m *middleman) hangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.conns {
		_ = c.Close()
	}
	clear(m.conns)
}

func (m *middleman) serve(c net.Conn, target string) {
	defer c.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	in, out := bufio.NewReader(c), bufio.NewReader(server)
	for {
		raw, err := readReply(in)
		if err != nil {
			return
		}
		reply := []byte(m.answer(commandOf(raw)))
		if len(reply) == 0 {
			if _, err := server.Write(raw); err != nil {
				return
			}
			if reply, err = readReply(out); err != nil {
				return
			}
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// commandOf is the words of a command.
func commandOf(raw []byte) (words []string) {
	in := bufio.NewReader(bytes.NewReader(raw))
	_, _ = in.ReadString('\n')
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return words
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
		word := make([]byte, n+2)
		_, _ = io.ReadFull(in, word)
		words = append(words, string(word[:n]))
	}
}

// readReply reads one message as it is.
func readReply(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return line, nil
		}
		rest := make([]byte, n+2)
		_, err := io.ReadFull(in, rest)
		return append(line, rest...), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range max(n, 0) {
			one, err := readReply(in)
			if err != nil {
				return nil, err
			}
			line = append(line, one...)
		}
	}
	return line, nil
}

// announce has the nodes of a cluster known by the addresses of middlemen.
func announce(t *testing.T, do func(i int, command ...string) string, men []*middleman) {
	t.Helper()
	for i, m := range men {
		_, port, _ := net.SplitHostPort(m.addr)
		do(i, "CONFIG", "SET", "cluster-announce-port", port)
	}
	testdep.Eventually(t, "all nodes know the addresses", func() bool {
		for i := range men {
			reported := do(i, "CLUSTER", "NODES")
			for _, m := range men {
				if !strings.Contains(reported, m.addr+"@") {
					return false
				}
			}
		}
		return true
	})
}

// slotsReply is what CLUSTER SLOTS says of masters that share the slots.
func slotsReply(addrs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(addrs))
	for i, addr := range addrs {
		host, port, _ := net.SplitHostPort(addr)
		id := strings.Repeat(strconv.Itoa(i), 40)
		fmt.Fprintf(&b, "*3\r\n:%d\r\n:%d\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$40\r\n%s\r\n",
			slotCount*i/len(addrs), slotCount*(i+1)/len(addrs)-1, len(host), host, port, id)
	}
	return b.String()
}
