package rls

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// hostile is a connection that sends any frames and reads nothing but what it must.
type hostile struct {
	t    testing.TB
	conn net.Conn
	next uint32
	gone chan struct{}
}

func attack(t testing.TB, addr string) *hostile {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	h := &hostile{t, conn, 1, make(chan struct{})}
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	h.send(4, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // streams have no window for answers
	go func() {
		defer close(h.gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return h
}

func (h *hostile) send(kind, flags byte, stream uint32, payload []byte) bool {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	head = binary.BigEndian.AppendUint32(head, stream)
	_ = h.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, err := h.conn.Write(append(head, payload...))
	return err == nil
}

// open begins a call.
func (h *hostile) open() (stream uint32, ok bool) {
	fields := []string{
		":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		"content-type", "application/grpc", "te", "trailers",
	}
	var block []byte
	for i := 0; i < len(fields); i += 2 { // literals without indexing
		block = append(block, 0, byte(len(fields[i])))
		block = append(block, fields[i]...)
		block = append(block, byte(len(fields[i+1])))
		block = append(block, fields[i+1]...)
	}
	stream = h.next
	h.next += 2
	return stream, h.send(frameHeaders, 4, stream, block)
}

func (h *hostile) cut() bool {
	select {
	case <-h.gone:
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

// guarded is a server behind a guard, and an honest client of it.
func guarded(t testing.TB, most held) (g *guard, addr string, ask func()) {
	t.Helper()
	store := memory.New()
	s := New(Options{Store: store, Near: store})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g = newGuard(most)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.grpc.Serve(guardedListener{l, g})
	}()
	t.Cleanup(func() {
		s.Close()
		<-ended
		g.close()
	})
	addr = l.Addr().String()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := pb.NewRateLimitServiceClient(conn)
	in := &pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "k"}}}}}
	return g, addr, func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := client.ShouldRateLimit(ctx, in); err != nil {
			t.Fatalf("an honest client: %v", err)
		}
	}
}

// Whoever holds more than its share of streams or of incomplete messages is cut off when all
// hold too much, and nobody else is.
func TestGuardCutsOffWhoHoldsTheMost(t *testing.T) {
	long := time.Hour
	for name, most := range map[string]held{
		"streams":  {streams: 200, bytes: 1 << 40, incomplete: long},
		"messages": {streams: 1 << 40, bytes: 1 << 20, incomplete: long},
	} {
		t.Run(name, func(t *testing.T) {
			g, addr, ask := guarded(t, most)
			ask()
			var attackers []*hostile
			for range 4 {
				h := attack(t, addr)
				attackers = append(attackers, h)
				for range 300 {
					stream, ok := h.open()
					if name == "messages" { // of 64 KiB, one byte of which never comes
						ok = ok && h.send(frameData, 0, stream, append([]byte{0, 0, 0, 255, 255}, make([]byte, 16<<10-5)...))
					}
					if !ok {
						break
					}
				}
				ask()
			}
			cut := 0
			for _, h := range attackers {
				select {
				case <-h.gone:
					cut++
				default:
				}
			}
			testdep.Eventually(t, "no more is held than may be", func() bool {
				return g.open.Load() <= most.streams+4*minShareStreams && g.bytes.Load() <= most.bytes+4*minShareBytes
			})
			if !attackers[3].cut() {
				t.Errorf("the last attacker is not cut off; %d others are", cut)
			}
			ask()
			for _, h := range attackers {
				h.conn.Close()
			}
			testdep.Eventually(t, "nothing is held of who is gone", func() bool { return g.open.Load() == 0 && g.bytes.Load() == 0 })
		})
	}
}

// A message that does not arrive ends its connection.
func TestGuardCutsOffWhoStalls(t *testing.T) {
	// Those that ask have to be quicker than those that stall.
	testdep.Undisturbed(t, 75*time.Millisecond, func(t testing.TB) {
		g, addr, ask := guarded(t, held{streams: 1 << 30, bytes: 1 << 40, incomplete: 300 * time.Millisecond})
		for _, half := range [][]byte{nil, {0}, {0, 0, 0, 1, 0, 'x'}} {
			h := attack(t, addr)
			stream, _ := h.open()
			if half != nil {
				h.send(frameData, 0, stream, half)
			}
			if !h.cut() {
				t.Errorf("after %d bytes of a message: not cut off", len(half))
			}
			ask()
		}
		testdep.Eventually(t, "nothing is held of who is gone", func() bool { return g.open.Load() == 0 && g.bytes.Load() == 0 })
	})
}

// A stream with many messages goes on for as long as each of them arrives.
func TestGuardLetsStreamsGoOn(t *testing.T) {
	testdep.Undisturbed(t, 75*time.Millisecond, func(t testing.TB) {
		g, addr, _ := guarded(t, held{streams: 1 << 30, bytes: 1 << 40, incomplete: 300 * time.Millisecond})
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ask := &reflectionpb.ServerReflectionRequest{
			Host:           strings.Repeat("x", 100<<10), // more than a frame
			MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
		}
		for began := time.Now(); time.Since(began) < time.Second; time.Sleep(10 * time.Millisecond) {
			if err := stream.Send(ask); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
		}
		time.Sleep(time.Second) // which is longer than a message may be incomplete, and nothing is begun
		if err := stream.Send(ask); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if n := g.bytes.Load(); n != 0 {
			t.Errorf("%d bytes are held of messages that are complete", n)
		}
	})
}

// Messages are followed whatever the pieces they come in.
func TestMessages(t *testing.T) {
	var text []byte
	lengths := []int{0, 1, 300, 0, 7}
	for _, n := range lengths {
		text = append(binary.BigEndian.AppendUint32(append(text, 0), uint32(n)), make([]byte, n)...)
	}
	for size := 1; size <= len(text); size++ {
		var m messages
		ended := 0
		for rest := text; len(rest) > 0; {
			n := min(size, len(rest))
			if m.follow(rest[:n]) {
				ended++
			}
			rest = rest[n:]
		}
		if m.got != 0 || ended == 0 || size == 1 && ended != len(lengths) {
			t.Fatalf("in pieces of %d: %d ends, %d bytes of another", size, ended, m.got)
		}
	}
	var m messages
	if m.follow([]byte{0, 0, 0, 0, 2, 'x'}) || m.got != 6 {
		t.Errorf("half a message: %+v", m)
	}
	m.lost = true
	if m.follow([]byte{'x', 0, 0, 0, 0, 0}) || m.got != 12 {
		t.Errorf("nobody knows where it ends: %+v", m)
	}
}

// Frames are followed whatever the pieces they come in.
func TestFrames(t *testing.T) {
	var text []byte
	want := []frame{{5, frameHeaders, 4, 1}, {0, frameData, 1, 1}, {300, frameData, 0, 3}, {4, frameReset, 0, 3}}
	for _, f := range want {
		text = append(text, byte(f.length>>16), byte(f.length>>8), byte(f.length), f.kind, f.flags)
		text = binary.BigEndian.AppendUint32(text, f.stream|1<<31)
		text = append(text, make([]byte, f.length)...)
	}
	for size := 1; size <= len(text); size++ {
		var fs frames
		var got []frame
		for rest := text; len(rest) > 0; {
			n := min(size, len(rest))
			fs.observe(rest[:n], func(f frame) { got = append(got, f) }, nil)
			rest = rest[n:]
		}
		if len(got) != len(want) {
			t.Fatalf("in pieces of %d: %v", size, got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("in pieces of %d: %v, want %v", size, got[i], want[i])
			}
		}
	}
}
