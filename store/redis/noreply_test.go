package redis

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The error of a call says whether it was sent, so that layers above know whether it may have been charged.
func TestErrorsOfCallsThatWereSent(t *testing.T) {
	server := testdep.Redis(t)
	check := []tidegate.Check{{Key: "k", Limit: tidegate.PerMinute(10), Cost: 1}}
	f := func(name, reply string, sent bool) {
		t.Helper()
		var on atomic.Bool
		var m *middleman
		m = newMiddleman(t, server.Addr, func(command []string) string {
			switch {
			case !on.Load() || !strings.HasPrefix(strings.ToUpper(command[0]), "EVAL"):
				return ""
			case reply == "":
				m.hangUp()
				return "+gone\r\n"
			}
			return reply
		})
		s := openTest(t, Config{Addrs: []string{m.addr}})
		asks := []chain.Ask{{Checks: check, Copies: 1}}
		if _, err := s.Take(t.Context(), check, 1); err != nil {
			t.Fatal(err)
		}
		on.Store(true)
		_, err := s.Take(t.Context(), check, 1)
		batchErr := fleetStore{s}.TakeBatch(t.Context(), asks)
		if batchErr == nil {
			batchErr = asks[0].Err
		}
		for _, err := range []error{err, batchErr} {
			if err == nil || errors.Is(err, chain.ErrNoReply) != sent {
				t.Errorf("%s: %v; want one of a call that was sent: %t", name, err, sent)
			}
		}
	}
	f("the connection breaks", "", true)
	f("the reply to another call", "$8\r\n12345678\r\n", true)
	f("a length that cannot be", "$-17\r\n", true)
	f("an error of the server", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", false)
	f("a loading server", "-LOADING Redis is loading the dataset in memory\r\n", false)

	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closing.Close()
	go func() {
		for conn, err := closing.Accept(); err == nil; conn, err = closing.Accept() {
			_ = conn.Close()
		}
	}()
	for name, addr := range map[string]string{"nobody listens": "127.0.0.1:1", "connections are closed at once": closing.Addr().String()} {
		s := openTest(t, Config{Addrs: []string{addr}})
		for range 5 {
			if _, err := s.Take(t.Context(), check, 1); err == nil || errors.Is(err, chain.ErrNoReply) {
				t.Errorf("%s: %v; want one of a call that was not sent", name, err)
			}
		}
	}
}
