package rls

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

// Calls that wait to be compared are held to a number of bytes, whatever the size of each, and the log
// shows a part of them.
func TestCompareIsBounded(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var log bytes.Buffer
	c, err := NewCompare(CompareOptions{Address: silent.Addr().String(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	in := &pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{
		{Key: "k", Value: strings.Repeat("é", MaxMessage/2-100)},
	}}}}
	out := &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK}
	most := compareBytes / proto.Size(in)
	for range 500 {
		c.ask(new(call), in, out)
		if n := len(c.queue); n > most {
			t.Fatalf("%d calls of %d bytes wait", n, proto.Size(in))
		}
	}
	if skipped, _ := c.Stats(); skipped == 0 {
		t.Error("no call was left out")
	}
	c.sample("a sample", comparison{in: in, out: out})
	c.Close()
	if n := log.Len(); n == 0 || n > MaxMessage/2 {
		t.Errorf("the log has %d bytes", n)
	}
	small, held := &pb.RateLimitRequest{Domain: "d"}, c.held.Load()
	c.ask(new(call), small, out)
	if got := c.held.Load() - held; held >= compareBytes || got != int64(proto.Size(small)+proto.Size(out)) {
		t.Errorf("%d bytes are held, %d for a small call", held, got)
	}
}
