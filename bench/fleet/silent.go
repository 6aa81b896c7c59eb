package main

import (
	"net"
	"sync"
)

// silentProxy passes everything on, or takes connections and all that is sent, and answers nothing.
type silentProxy struct {
	net.Listener
	target string

	mu     sync.Mutex
	silent chan struct{} // closed when it is over; nil means it passes
}

func startSilent(target string) (*silentProxy, error) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &silentProxy{Listener: in, target: target}
	go func() {
		for {
			client, err := in.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return p, nil
}

// set makes it silent, or ends that.
func (p *silentProxy) set(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case silent && p.silent == nil:
		p.silent = make(chan struct{})
	case !silent && p.silent != nil:
		close(p.silent)
		p.silent = nil
	}
}

// wait returns when it is not silent.
func (p *silentProxy) wait() {
	p.mu.Lock()
	silent := p.silent
	p.mu.Unlock()
	if silent != nil {
		<-silent
	}
}

func (p *silentProxy) pass(client net.Conn) {
	defer client.Close()
	p.wait()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	go p.copy(server, client)
	p.copy(client, server)
}

func (p *silentProxy) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.wait()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
