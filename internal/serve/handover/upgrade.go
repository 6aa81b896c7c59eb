package handover

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// upgrade starts a successor and hands over to it. done is true if this process has nothing left to
// do, because the successor took over or ctx ended meanwhile.
func (p *process) upgrade(ctx context.Context) (done bool, err error) {
	if os.Getpid() == 1 {
		p.Log.Error("not upgraded: this is the first process of a container, which ends with it; start another container instead")
		return false, nil
	}
	p.Log.Info("upgrade: a successor is started")
	s, gone, err := p.replace(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return true, p.stop()
	case err != nil:
		p.Log.Error("not upgraded: this process goes on, since its successor did not take over", "err", err)
		return false, nil
	}
	p.notify(fmt.Sprintf("MAINPID=%d", s.pid()), "READY=1")
	p.Log.Info("upgraded: a successor took over, and this process ends with its last request", "successor", s.pid(), "drain", p.Drain)
	s.close()
	<-gone
	p.old.Wait()
	return true, nil
}

// replace returns when a successor serves instead of this process; the channel is closed when
// requests in progress are done. On an error, this process continues to serve.
func (p *process) replace(ctx context.Context) (*successor, <-chan struct{}, error) {
	file, remove, err := p.place()
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	left, drop := p.leaveFiles()
	defer drop()
	s, err := start(p.endpoints, p.held, left)
	if err != nil {
		return nil, nil, err
	}
	err = s.await(ctx, messagePrepared, p.stepTimeout)
	var again []*opened
	if err == nil {
		again, err = p.spare()
	}
	if err != nil {
		s.kill()
		return nil, nil, err
	}
	if p.Leaving != nil {
		p.Leaving()
	}
	for _, d := range p.endpoints {
		d.own(false) // the successor continues to use its file
	}
	gone := p.leave(p.endpoints)
	select {
	case <-gone:
	case <-time.After(parting):
	}
	if err = p.give(ctx, s, file); err != nil {
		s.kill()
		if p.Resumed != nil {
			p.Resumed()
		}
		p.old.Go(func() { <-gone })
		p.endpoints = again
		for _, d := range p.endpoints {
			d.own(!p.held[d.Name])
		}
		p.serve()
		return nil, nil, err
	}
	closeAll(again)
	return s, gone, nil
}

// leaveFiles writes the files that a successor needs before it is prepared into a new folder, which
// drop removes; "" if there are none.
func (p *process) leaveFiles() (folder string, drop func()) {
	drop = func() {}
	if p.Leave == nil {
		return "", drop
	}
	folder, err := os.MkdirTemp("", "tidegate-left-")
	if err == nil {
		drop = func() { os.RemoveAll(folder) }
		err = p.Leave(folder)
	}
	if err != nil {
		p.Log.Warn("upgrade: the rules in force could not be handed over, the successor reads them from their sources", "err", err)
		drop()
		return "", func() {}
	}
	return folder, drop
}

// give hands everything over, and returns when the successor serves with it.
func (p *process) give(ctx context.Context, s *successor, file string) error {
	if p.HandOver != nil {
		if err := p.HandOver(file); err != nil {
			return err
		}
	}
	if err := s.yours(file); err != nil {
		return s.why()
	}
	return s.await(ctx, messageServing, p.stepTimeout)
}

// place returns the file to hand over in; "" if there is nothing to hand over. Without Options.File
// it is in a new folder, which remove removes.
func (p *process) place() (file string, remove func(), err error) {
	if p.HandOver == nil || p.File != "" {
		return p.File, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "tidegate-handover-")
	if err != nil {
		return "", func() {}, err
	}
	return filepath.Join(dir, "counters"), func() { os.RemoveAll(dir) }, nil
}

// spare opens the endpoints once more on the same sockets, without serving yet.
func (p *process) spare() (endpoints []*opened, err error) {
	for _, d := range p.endpoints {
		again := d.Endpoint
		if again.Listener, err = twin(d.Listener); err != nil {
			closeAll(endpoints)
			return nil, fmt.Errorf("keep the socket %s: %w", d.Listener.Addr(), err)
		}
		endpoint, err := again.build()
		if err != nil {
			again.Listener.Close()
			closeAll(endpoints)
			return nil, err
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints, nil
}

// closeAll closes the servers and the listeners of endpoints.
func closeAll(endpoints []*opened) {
	for _, d := range endpoints {
		d.end()
		d.Listener.Close()
	}
}

// twin returns another listener on the socket of l.
func twin(l net.Listener) (net.Listener, error) {
	f, err := share(l)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}
