package source

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// patient is an origin that waits long before it says that there is nothing new.
type patient struct {
	down atomic.Bool
	last atomic.Value // what it was asked for
}

func (p *patient) Name() string { return "patient" }
func (p *patient) Close() error { return nil }

func (p *patient) Next(ctx context.Context, have string) (*Bundle, error) {
	p.last.Store(have)
	if p.down.Load() {
		return nil, errors.New("down")
	}
	b := &Bundle{Edition: Edition{Revision: "1"}, Files: map[string][]byte{"rules.yaml": []byte("version: 1\n")}}
	if have != b.Revision {
		return b, nil
	}
	for range 60 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
		if p.down.Load() {
			return nil, errors.New("down")
		}
	}
	return nil, nil
}

// A source that was away is known to be back when it is, and not after a whole long poll.
func TestSourceIsBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patient{}
		o := Options{Log: slog.New(slog.DiscardHandler)}
		o.fill()
		var arrived atomic.Int64
		asks := newPoller(Layer{Origin: p}, &o, func() { arrived.Add(1) })
		ctx, stop := context.WithCancel(t.Context())
		go asks.run(ctx)
		time.Sleep(5 * time.Second)
		p.down.Store(true)
		time.Sleep(5 * time.Second)
		var s LayerStatus
		if asks.show(&s); s.Error == "" {
			t.Fatal("it is not known to be away")
		}
		p.down.Store(false)
		time.Sleep(lastRetry)
		s = LayerStatus{}
		if asks.show(&s); s.Error != "" || time.Since(s.Reached) > lastRetry {
			t.Errorf("%s after it is back: %+v", lastRetry, s)
		}
		if last := p.last.Load(); last != "1" || arrived.Load() != 1 {
			t.Errorf("it is asked for %q, and has arrived %d times", last, arrived.Load())
		}
		stop()
		<-asks.done
	})
}
