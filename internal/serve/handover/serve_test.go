package handover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// diary notes what happens, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// fake is a server that notes what it is told.
type fake struct {
	*diary
	name  string
	fails error         // why Serve ends by itself
	stays bool          // somebody does not leave
	over  chan struct{} // Serve ends
	once  sync.Once
}

func (f *fake) Serve(net.Listener) error {
	if f.fails != nil {
		return f.fails
	}
	<-f.over
	return nil
}

func (f *fake) Shutdown(ctx context.Context) error {
	f.note("%s shuts down", f.name)
	f.once.Do(func() { close(f.over) })
	if f.stays {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f *fake) Close() error {
	f.note("%s is closed", f.name)
	f.once.Do(func() { close(f.over) })
	return nil
}

func (d *diary) endpoint(name string, f *fake) Endpoint {
	f.diary, f.name, f.over = d, name, make(chan struct{})
	return Endpoint{Name: name, Open: func() (Server, error) { return f, nil }}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestStopsInOrder(t *testing.T) {
	f := func(clients *fake, snapshot error, want ...string) {
		t.Helper()
		var d diary
		last := d.endpoint("admin", &fake{})
		last.Last = true
		ctx, stop := context.WithCancel(t.Context())
		stop()
		err := Serve(ctx, &Heir{}, Options{
			Endpoints: []Endpoint{last, d.endpoint("gateway", clients)},
			Snapshot:  func(file string) error { d.note("%s is written", file); return snapshot },
			File:      "counters", Drain: 50 * time.Millisecond, Log: quiet(),
			Stopping: func() { d.note("stopping") },
		})
		if !errors.Is(err, snapshot) {
			t.Errorf("ends with %v, want %v", err, snapshot)
		}
		if !slices.Equal(d.lines, want) {
			t.Errorf("\n got %s\nwant %s", strings.Join(d.lines, ", "), strings.Join(want, ", "))
		}
	}
	order := []string{"stopping", "gateway shuts down", "gateway is closed", "counters is written", "admin is closed"}
	f(&fake{}, nil, order...)
	f(&fake{stays: true}, nil, order...) // drain bounds the wait
	f(&fake{}, errors.New("the disk is full"), order...)
}

func TestFailedServerEndsTheProcess(t *testing.T) {
	var d diary
	broken := errors.New("too many open files")
	err := Serve(t.Context(), &Heir{}, Options{
		Endpoints: []Endpoint{d.endpoint("admin", &fake{}), d.endpoint("gateway", &fake{fails: broken})},
		Drain:     time.Second, Log: quiet(),
	})
	if !errors.Is(err, broken) {
		t.Errorf("ends with %v", err)
	}
}

func TestDoorThatCannotOpen(t *testing.T) {
	broken := errors.New("no upstream")
	err := Serve(t.Context(), &Heir{}, Options{Endpoints: []Endpoint{{Open: func() (Server, error) { return nil, broken }}}, Log: quiet()})
	if !errors.Is(err, broken) {
		t.Errorf("ends with %v", err)
	}
}
