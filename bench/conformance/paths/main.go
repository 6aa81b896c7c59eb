// Command paths asks real servers how they read request targets, and writes their
// answers into a table. The tests of internal/front/gateway take that table: whatever a server
// takes for a route, the rules of that route must have held.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "file to write the table to")
	flag.Parse()
	if *out == "" {
		log.Fatal("paths: -out names no file to write the table to")
	}
	if err := run(*out); err != nil {
		log.Fatal("paths: ", err)
	}
}

func run(out string) error {
	servers, stop, err := startServers()
	if err != nil {
		return err
	}
	defer stop()
	targets := spellings()
	targets = append(targets, stripped(targets)...)
	passed, err := forwarded(targets)
	if err != nil {
		return err
	}
	targets = append(targets, passed...)
	slices.Sort(targets)
	targets = slices.Compact(targets)
	t := newTable()
	for _, target := range targets {
		row := map[string]string{}
		for _, s := range servers {
			if err := s.read(target, row); err != nil {
				return fmt.Errorf("ask %s for %q: %w", s.name, target, err)
			}
		}
		t.add(target, row)
	}
	log.Printf("%d targets, read by %s", len(t.rows), strings.Join(columns, ", "))
	return os.WriteFile(out, []byte(t.String()), 0o644)
}

// read puts how s reads a target into the row: route and path, a status, or "closed".
func (s server) read(target string, row map[string]string) error {
	conn, err := net.DialTimeout("tcp", s.addr, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", target); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.all(row, "closed") // it would not even say why not
		return nil
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.all(row, strconv.Itoa(res.StatusCode))
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(body)) {
		name, reading, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if s.name != "" {
			name = s.name
		}
		row[name] = reading
	}
	return nil
}

// all gives every reading of the server the same answer.
func (s server) all(row map[string]string, answer string) {
	names := []string{s.name}
	if s.name == "" {
		names = nodeReadings
	}
	for _, name := range names {
		row[name] = answer
	}
}
