package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// connections of a heat over RESP, as redis-benchmark has by default.
const connections = 50

// sampled is how many batches of a connection go by between two whose time is taken.
const sampled = 16

// pipeline keeps connections busy from one thread, as redis-benchmark does: each sends a
// batch of commands, waits for all the replies and sends the next one. It is of our own, as
// a load generator that takes the replies apart would take more of the cores than the
// servers; this one counts lines and looks at how each reply begins.
type pipeline struct {
	command respCommand
	depth   int
	batches [][]byte

	epoll int
	conns map[int32]*conn
	tally respTally
	times []time.Duration
}

// conn is one connection with one batch under way.
type conn struct {
	fd      int
	next    int // batch
	replies []byte
	begun   time.Time // zero when the time is not taken
}

// respTally is what the load generator counted in one heat.
type respTally struct {
	replies, wrong int64
	took, p99      time.Duration
}

func (t respTally) rate() float64 { return float64(t.replies) / t.took.Seconds() }

// drive asks address for d.
func (c respCommand) drive(ctx context.Context, address string, depth int, d time.Duration) (respTally, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := &pipeline{command: c, depth: depth, batches: c.batches(depth), conns: make(map[int32]*conn)}
	defer p.close()
	if err := p.connect(address); err != nil {
		return respTally{}, fmt.Errorf("connect to %s: %w", address, err)
	}
	runtime.GC()
	start := time.Now()
	if err := p.ask(ctx, start.Add(d)); err != nil {
		return respTally{}, fmt.Errorf("ask %s: %w", address, err)
	}
	p.tally.took = time.Since(start)
	if slices.Sort(p.times); len(p.times) > 0 {
		p.tally.p99 = p.times[len(p.times)*99/100]
	}
	return p.tally, nil
}

func (p *pipeline) connect(address string) (err error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if p.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return err
	}
	for range connections {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		p.conns[int32(fd)] = &conn{fd: fd, next: rand.IntN(len(p.batches))}
		err = errors.Join(
			syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
			syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
			syscall.SetNonblock(fd, true),
			syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}))
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) close() {
	for _, c := range p.conns {
		_ = syscall.Close(c.fd)
	}
	_ = syscall.Close(p.epoll)
}

// ask keeps all connections busy until end, and waits for what is under way then.
func (p *pipeline) ask(ctx context.Context, end time.Time) error {
	busy := 0
	for _, c := range p.conns {
		if err := p.send(c); err != nil {
			return err
		}
		busy++
	}
	events := make([]syscall.EpollEvent, connections)
	for busy > 0 {
		n, err := syscall.EpollWait(p.epoll, events, 5000)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return errors.New("no answer for 5 s")
		}
		over := ctx.Err() != nil || !time.Now().Before(end)
		for _, e := range events[:n] {
			c := p.conns[e.Fd]
			whole, err := p.receive(c)
			if err == nil && whole && !over {
				err = p.send(c)
			} else if whole {
				busy--
			}
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// send writes a batch, for which an empty buffer of the kernel has room.
func (p *pipeline) send(c *conn) error {
	b := p.batches[c.next%len(p.batches)]
	c.begun = time.Time{}
	if c.next%sampled == 0 {
		c.begun = time.Now()
	}
	c.next++
	n, err := syscall.Write(c.fd, b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("only %d of %d bytes could be sent", n, len(b))
	}
	return err
}

// receive reads what there is, and reports whether the batch is answered.
func (p *pipeline) receive(c *conn) (whole bool, err error) {
	if c.replies == nil {
		c.replies = make([]byte, 0, 16<<10)
	}
	n, err := syscall.Read(c.fd, c.replies[len(c.replies):cap(c.replies)])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return false, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, fmt.Errorf("the connection was closed: %w", net.ErrClosed)
	}
	c.replies = c.replies[:len(c.replies)+n]
	if !p.command.whole(c.replies, p.depth) {
		if len(c.replies) == cap(c.replies) {
			return false, fmt.Errorf("%d bytes of replies to %d commands", len(c.replies), p.depth)
		}
		return false, nil
	}
	p.tally.replies += int64(p.depth)
	p.tally.wrong += int64(p.command.wrong(c.replies, p.depth))
	c.replies = c.replies[:0]
	if !c.begun.IsZero() {
		p.times = append(p.times, time.Since(c.begun))
	}
	return true, nil
}
