package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// streams opens a stream per attacker on one connection, with the given flow control window for
// the answers, and sends half of a body or none. It returns when every stream has ended or was
// reset, and how long that took. The connection itself stays alive: it answers pings.
func streams(window uint32, bodies bool) func(context.Context, string) (time.Duration, error) {
	return func(ctx context.Context, url string) (time.Duration, error) {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http2.NextProtoTLS}})
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(40 * time.Second))
		if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
			return 0, err
		}
		framer := http2.NewFramer(conn, conn)
		if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
			return 0, err
		}
		open := map[uint32]bool{}
		for i := range uint32(attackers) {
			id := 2*i + 1
			open[id] = true
			if err := openStream(framer, id, bodies); err != nil {
				return 0, err
			}
		}
		start := time.Now()
		for len(open) > 0 {
			frame, err := framer.ReadFrame()
			if err != nil {
				return time.Since(start), fmt.Errorf("%d streams were left when the connection ended: %w", len(open), err)
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					err = framer.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					err = framer.WritePing(true, f.Data)
				}
			case *http2.RSTStreamFrame:
				delete(open, f.StreamID)
			case *http2.HeadersFrame:
				if f.StreamEnded() {
					delete(open, f.StreamID)
				}
			case *http2.DataFrame:
				if f.StreamEnded() {
					delete(open, f.StreamID)
				}
			}
			if err = errors.Join(err, ctx.Err()); err != nil {
				return time.Since(start), err
			}
		}
		return time.Since(start), nil
	}
}

func openStream(framer *http2.Framer, id uint32, body bool) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	method := "GET"
	if body {
		method = "POST"
	}
	for _, f := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "127.0.0.1"}, {":path", "/held/a"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: !body}); err != nil || !body {
		return err
	}
	return framer.WriteData(id, false, []byte("half of a bo"))
}
