package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/sleep"
)

// session is one stream to a control plane.
type session struct {
	w        *Watcher
	stream   discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	node     *core.Node
	accepted string  // the version that was accepted last
	has      bool    // the server has sent rules in this stream, and they were accepted
	refusing bool    // the last response was refused
	again    backoff // before the next refusal
}

// session connects, and handles responses until the connection ends. It returns why that ended.
func (w *Watcher) session(ctx context.Context) error {
	conn, err := w.o.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	s := &session{w: w, stream: stream, node: w.o.node(), again: backoff{least: w.pace.quiet, most: w.pace.again}}
	// Without a version: that of another server, or of the same one before it was restarted,
	// may be called the same and be another.
	if err := s.send("", nil); err != nil {
		return s.ended(err)
	}
	w.connected()
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := s.take(ctx, r); err != nil {
			return s.ended(err)
		}
		if sleep.For(ctx, w.pace.quiet) != nil {
			return ctx.Err()
		}
	}
}

// ended returns why the stream ended if err, from Send, is io.EOF, which only says that it did;
// otherwise it returns err.
func (s *session) ended(err error) error {
	if errors.Is(err, io.EOF) {
		if _, why := s.stream.Recv(); why != nil {
			return why
		}
	}
	return err
}

// take puts a response in force and acknowledges it, or rejects it. The error is about the
// connection.
func (s *session) take(ctx context.Context, r *discovery.DiscoveryResponse) error {
	if r.GetTypeUrl() != configType {
		return fmt.Errorf("it sent a response of the type %s, which was not asked for", diag.Quote(r.GetTypeUrl()))
	}
	if err := s.w.take(r, s.has); err != nil {
		why := refusal(err)
		s.w.refused(err, why)
		// A server may send the same again at once.
		if s.refusing && sleep.For(ctx, s.again.next()) != nil {
			return ctx.Err()
		}
		s.refusing = true
		return s.send(r.GetNonce(), &status.Status{Code: int32(codes.InvalidArgument), Message: why})
	}
	s.has = s.has || len(r.GetResources()) > 0
	s.refusing = false
	s.again.reset()
	s.accepted = r.GetVersionInfo()
	return s.send(r.GetNonce(), nil)
}

func (s *session) send(nonce string, bad *status.Status) error {
	return s.stream.Send(&discovery.DiscoveryRequest{
		Node: s.node, TypeUrl: configType, VersionInfo: s.accepted, ResponseNonce: nonce, ErrorDetail: bad,
	})
}

// node describes this process to the control plane.
func (o *Options) node() *core.Node {
	n := &core.Node{
		Id: o.NodeID, UserAgentName: "tidegate",
		UserAgentVersionType: &core.Node_UserAgentVersion{UserAgentVersion: o.Version},
	}
	if len(o.Metadata) > 0 {
		n.Metadata = &structpb.Struct{Fields: make(map[string]*structpb.Value)}
		for k, v := range o.Metadata {
			n.Metadata.Fields[k] = structpb.NewStringValue(v)
		}
	}
	return n
}

// take puts a response in force, or returns why it is refused. again means that the server has sent
// rules in this stream: an empty response then removes them, and otherwise is ignored.
func (w *Watcher) take(r *discovery.DiscoveryResponse, again bool) error {
	old := w.set.Load()
	if len(r.GetResources()) == 0 && len(old.Domains()) > 0 && !again {
		w.record.edit(func() { w.record.is.Kept = true; w.record.accepted() })
		w.told = ""
		w.o.Log.Warn("the control plane has no rules, and has had none since this connection began: the previous ones stay in force", "address", w.o.Address)
		return nil
	}
	set, hash, err := compile(r.GetResources(), w.o.Rules)
	if err == nil && w.o.Accept != nil {
		err = w.o.Accept(set)
	}
	if err != nil {
		return err
	}
	changed := old == nil || hash != w.hash
	if changed {
		w.set.Store(set)
		w.hash = hash
	}
	version, first := clip(r.GetVersionInfo()), false
	w.record.edit(func() {
		is := &w.record.is
		is.Version, is.Kept = version, false
		w.record.accepted()
		if changed {
			is.LoadedAt, is.Domains = time.Now(), len(set.Domains())
			is.Updates++
		}
		first, w.record.answered = !w.record.answered, true
	})
	w.told = ""
	if changed {
		w.o.Log.Info("rules of the control plane are in force", "address", w.o.Address, "version", version, "domains", len(set.Domains()))
		if w.o.OnChange != nil {
			w.o.OnChange(old, set)
		}
	}
	if first {
		close(w.first)
	}
	return nil
}

// refused records that a response is not put in force.
func (w *Watcher) refused(err error, why string) {
	known := false
	w.record.edit(func() {
		known = w.record.refusal == why
		w.record.refusal, w.record.refused = why, err
		w.record.is.Rejected++
	})
	if !known {
		w.o.Log.Error("rules of the control plane were refused: the previous ones stay in force", "address", w.o.Address, "err", why)
	}
}

const (
	toldProblems = 10   // of all, in a refusal
	toldBytes    = 8192 // of their text
)

// refusal returns the text of err for the server, shortened: most servers log it unchanged.
func refusal(err error) string {
	var list diag.List
	var text string
	if errors.As(err, &list) {
		text = list[:min(len(list), toldProblems)].Error()
		if all, _ := list.Count(); all > toldProblems {
			text += fmt.Sprintf("\nand %d more", all-toldProblems)
		}
	} else {
		text = err.Error()
	}
	if len(text) > toldBytes {
		text = text[:toldBytes] + "…"
	}
	return strings.ToValidUTF8(text, "") // it may be cut inside of a character
}

// reason returns why a connection ended, in words.
func reason(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "it ended the stream"
	}
	s, ok := grpcstatus.FromError(err)
	switch {
	case !ok:
		return err.Error()
	case s.Code() == codes.ResourceExhausted:
		return s.Message() + "; if the server means well, raise xds.max_message"
	case s.Code() == codes.Unimplemented:
		return s.Message() + "; is this the address of a control plane?"
	}
	return s.Message()
}
