// Command h2spec runs the conformance suite of the same name against the gateway, over TLS,
// and against a server of plain net/http, in the same run. It fails when a case fails that
// does not fail there.
package main

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/served"
)

const suite = "github.com/summerwind/h2spec/cmd/h2spec" // its version is in go.mod

func main() { rig.Main("h2spec", 15*time.Minute, run) }

func run(ctx context.Context, _ []string, out io.Writer) error {
	dir, tidegate, err := served.BuildTemp(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "h2spec")
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, suite).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", suite, err, output)
	}
	cert, key, err := served.Certificate(dir)
	if err != nil {
		return err
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("hello ", 100))
	})
	upstream := httptest.NewServer(hello)
	defer upstream.Close()
	gateway, err := served.Start(ctx, tidegate, "--upstreams="+upstream.URL, "--tls.cert="+cert, "--tls.key="+key)
	if err != nil {
		return err
	}
	defer gateway.Stop()
	plain, err := servePlain(cert, key, hello)
	if err != nil {
		return err
	}
	defer plain.Close()

	theirs, err := failures(ctx, program, dir, plain.Addr().String())
	if err != nil {
		return err
	}
	ours, err := failures(ctx, program, dir, strings.TrimPrefix(gateway.URL, "https://"))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d cases; %d fail on net/http, %d on the gateway\n", ours.cases, len(theirs.failed), len(ours.failed))
	for _, name := range theirs.failed {
		fmt.Fprintf(out, "  net/http  %s\n", name)
	}
	for _, name := range ours.failed {
		fmt.Fprintf(out, "  gateway   %s\n", name)
	}
	own := slices.DeleteFunc(ours.failed, func(name string) bool { return slices.Contains(theirs.failed, name) })
	if ours.cases < 100 || ours.cases != theirs.cases {
		return fmt.Errorf("%d and %d cases were run: is this the suite?", ours.cases, theirs.cases)
	}
	if len(own) > 0 {
		fmt.Fprintf(out, "missed: %d cases fail on the gateway alone\n", len(own))
		return rig.ErrMissed
	}
	return nil
}

// servePlain serves h over TLS by plain net/http.
func servePlain(cert, key string, h http.Handler) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.ServeTLS(l, "", "") }()
	return l, nil
}

// result is what came of a run.
type result struct {
	cases  int
	failed []string
}

// report is the JUnit report of the suite.
type report struct {
	Suites []struct {
		Package string `xml:"package,attr"`
		Cases   []struct {
			Package string    `xml:"package,attr"`
			Class   string    `xml:"classname,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// failures runs the suite, and again if a case fails, since some go by the clock: only what
// fails twice counts.
func failures(ctx context.Context, program, dir, address string) (result, error) {
	first, err := runSuite(ctx, program, dir, address)
	if err != nil || len(first.failed) == 0 {
		return first, err
	}
	again, err := runSuite(ctx, program, dir, address)
	if err != nil {
		return first, err
	}
	first.failed = slices.DeleteFunc(first.failed, func(name string) bool { return !slices.Contains(again.failed, name) })
	return first, nil
}

func runSuite(ctx context.Context, program, dir, address string) (result, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return result{}, err
	}
	file := filepath.Join(dir, "report.xml")
	// Its exit status is 1 when a case fails; the report says which.
	output, _ := exec.CommandContext(ctx, program, "--tls", "--insecure", "--strict", "--timeout=5",
		"--host="+host, "--port="+port, "--junit-report="+file).CombinedOutput()
	raw, err := os.ReadFile(file)
	if err != nil {
		return result{}, fmt.Errorf("run %s: %w\n%s", suite, err, output)
	}
	defer os.Remove(file)
	var r report
	if err := xml.Unmarshal(raw, &r); err != nil {
		return result{}, fmt.Errorf("read the report: %w", err)
	}
	var found result
	for _, s := range r.Suites {
		for _, c := range s.Cases {
			found.cases++
			if c.Failure != nil || c.Error != nil {
				found.failed = append(found.failed, c.Package+": "+c.Class)
			}
		}
	}
	return found, nil
}
