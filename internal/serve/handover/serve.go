package handover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options of [Serve].
type Options struct {
	// Endpoints to serve on.
	Endpoints []Endpoint
	// Snapshot writes the counters to File when the process ends without a successor.
	Snapshot func(file string) error
	// File is where the counters are kept between runs; "" means nowhere, but a successor gets them
	// in a file of its own.
	File string
	// HandOver writes all that a successor continues with, to a file and others that are named after
	// it, and lets go of what only one process can have; nil means that there is nothing to hand over.
	HandOver func(file string) error
	// Leaving, if not nil, is called before HandOver, when a successor is prepared and this process still
	// accepts: it ends what takes time to end.
	Leaving func()
	// Drain is how long requests in progress may take to end.
	Drain time.Duration
	// Upgrade asks to hand over to a successor; nil means never.
	Upgrade <-chan os.Signal
	// Stopping, if not nil, is called when the process begins to end.
	Stopping func()
	// Leave, if not nil, writes what a successor needs before it is prepared into a new, empty
	// folder; see [Heir.Left]. Without it, or if it fails, the successor gets no such files.
	Leave func(folder string) error
	// Resumed, if not nil, is called when a successor failed to take over after Leaving and HandOver were
	// called.
	Resumed func()
	// Log is told what happens.
	Log *slog.Logger
}

// Serve serves until ctx ends or a successor has taken over, and returns when the requests in
// progress are done. The error is why it could not continue.
//
// When ctx ends, it accepts no more connections, tells clients to disconnect, waits up to Drain for
// requests in progress, and writes the counters.
func Serve(ctx context.Context, h *Heir, o Options) error {
	return serve(ctx, h, o, stepTimeout)
}

func serve(ctx context.Context, h *Heir, o Options, stepTimeout time.Duration) error {
	p := &process{Options: o, held: h.held, stepTimeout: stepTimeout, failed: make(chan error, 1)}
	for _, d := range o.Endpoints {
		endpoint, err := d.build()
		if err != nil {
			return err
		}
		p.endpoints = append(p.endpoints, endpoint)
	}
	h.claimSockets()
	p.serve()
	if !h.Follows() { // otherwise the predecessor tells systemd, which expects it from there
		p.notify("READY=1")
	}
	h.serving()
	for {
		select {
		case <-ctx.Done():
			return p.stop()
		case err := <-p.failed:
			return errors.Join(err, p.stop())
		case <-o.Upgrade:
			if done, err := p.upgrade(ctx); done {
				return err
			}
		}
	}
}

// process is a serving process.
type process struct {
	Options
	held        map[string]bool // names of sockets that systemd holds
	stepTimeout time.Duration
	endpoints   []*opened
	old         sync.WaitGroup // endpoints of failed upgrades, which may still have requests
	failed      chan error
}

func (p *process) serve() {
	for _, d := range p.endpoints {
		d.serve(p.failed)
	}
}

// notify tells systemd the state of the process.
func (p *process) notify(lines ...string) {
	if err := notify(lines...); err != nil {
		p.Log.Warn("systemd could not be notified of the state of this process", "err", err)
	}
}

// stop ends the process.
func (p *process) stop() error {
	p.notify("STOPPING=1")
	if p.Stopping != nil {
		p.Stopping()
	}
	p.Log.Info("stopping: no further connections are accepted", "drain", p.Drain)
	var first, last []*opened
	for _, d := range p.endpoints {
		if d.Last {
			last = append(last, d)
		} else {
			first = append(first, d)
		}
	}
	<-p.leave(first)
	p.old.Wait()
	err := p.save()
	for _, d := range last {
		d.end()
	}
	return err
}

// leave closes endpoints in the background. The returned channel is closed when the requests in
// progress are done.
func (p *process) leave(endpoints []*opened) <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), p.Drain)
	var all sync.WaitGroup
	for _, d := range endpoints {
		d.closing.Store(true)
		all.Go(func() { d.leave(ctx, p.Log) })
	}
	gone := make(chan struct{})
	go func() {
		all.Wait()
		cancel()
		close(gone)
	}()
	return gone
}

// save writes the counters to the file for the next process.
func (p *process) save() error {
	if p.File == "" {
		return nil
	}
	if err := p.Snapshot(p.File); err != nil {
		return fmt.Errorf("the counters are lost: %w", err)
	}
	p.Log.Info("counters written", "file", p.File)
	return nil
}
