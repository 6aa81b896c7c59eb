package main

import (
	"io"
	"math/rand/v2"
	"net"
)

// startLossy starts a proxy that cuts a connection in place of one answer in twenty.
func startLossy(target string) (net.Listener, error) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			client, err := in.Accept()
			if err != nil {
				return
			}
			go passLossy(client, target)
		}
	}()
	return in, nil
}

func passLossy(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, client) }()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil || rand.IntN(20) == 0 {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
