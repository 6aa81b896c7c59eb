package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain: called by the name of curl, the test binary does what the printed
// lines need of it, for machines that have none.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "curl" {
		if err := curl(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "curl:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func curl(args []string) error {
	flags := flag.NewFlagSet("curl", flag.ContinueOnError)
	flags.Bool("s", false, "")
	include := flags.Bool("i", false, "")
	flags.String("o", "", "")
	write := flags.String("w", "", "")
	header := flags.String("H", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodGet, flags.Arg(0), nil)
	if err != nil {
		return err
	}
	if name, value, ok := strings.Cut(*header, ": "); ok {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if *include {
		return resp.Write(os.Stdout)
	}
	_, err = fmt.Print(strings.ReplaceAll(*write, "%{http_code}", fmt.Sprint(resp.StatusCode)))
	return err
}

// output is what run prints, readable while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start runs the demo on a free port and returns its URL and what ends it.
func start(t *testing.T) (url string, out *output, end func() error) {
	out = new(output)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-listen", "127.0.0.1:0"}, out) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = end() })
	for range 1000 {
		if url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(out.String()); url != "" && strings.Contains(out.String(), "Ctrl-C") {
			return url, out, end
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the demo does not say where it listens: %q", out)
	return
}

// The printed lines, run by a shell as they are, do what they promise; with the
// curl of this machine as well, if it has one.
func TestPrintedLinesKeepTheirPromise(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	standIn := t.TempDir()
	if err := os.Symlink(self, filepath.Join(standIn, "curl")); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"stand-in": standIn + ":" + os.Getenv("PATH")}
	if _, err := exec.LookPath("curl"); err == nil {
		paths["curl"] = os.Getenv("PATH")
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, out, _ := start(t)
			for _, try := range tries {
				if !strings.Contains(out.String(), "\n"+try.command(url)+"\n#   -> "+try.want+"\n") {
					t.Errorf("the demo does not print %q and its promise %q:\n%s", try.line, try.want, out)
				}
				sh := exec.Command("sh", "-c", try.command(url))
				sh.Env = append(os.Environ(), "PATH="+path, "GORACE=atexit_sleep_ms=0") // the stand-in ends at once
				said, err := sh.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", try.line, err, said)
				}
				check(t, try, strings.TrimSpace(string(said)))
			}
		})
	}
}

func check(t *testing.T, try try, said string) {
	if !strings.Contains(try.want, "body") {
		if said != try.want {
			t.Errorf("%s\nsaid %q, want %q", try.line, said, try.want)
		}
		return
	}
	for _, want := range []string{
		" 429 ", "Retry-After: ", `"api";q=5;w=10`, `"api";r=0;t=`, "application/problem+json", `"violated-policies":["api"]`,
	} {
		if !strings.Contains(strings.ReplaceAll(said, "Ratelimit", "RateLimit"), want) {
			t.Errorf("%s\ndoes not say %q:\n%s", try.line, want, said)
		}
	}
}

func TestInterruptFinishesWhatIsUnderWay(t *testing.T) {
	url, _, end := start(t)
	code := make(chan int, 1)
	go func() {
		resp, err := http.Get(url + "/reports")
		if err != nil {
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	time.Sleep(300 * time.Millisecond)
	if err := end(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if got := <-code; got != 200 {
		t.Errorf("the report under way was answered %d", got)
	}
	if _, err := http.Get(url + "/api/"); err == nil {
		t.Error("it still listens")
	}
}

func TestTakenPortIsSaidClearly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = run(t.Context(), []string{"-listen", l.Addr().String()}, new(output))
	if err == nil || !strings.Contains(err.Error(), "another program") || !strings.Contains(err.Error(), "-listen") {
		t.Errorf("error %v", err)
	}
}
