package main

import (
	"bufio"
	"embed"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed servers
var sources embed.FS

// tomcat is what the distribution's libtomcat10-embed-java installs.
const tomcat = "/usr/share/java/tomcat10-embed-core.jar"

// server is a real server that says how it reads a request target.
type server struct {
	name string // of its reading; "" if it answers with the names
	addr string
}

// startServers starts all of them, and returns what stops them.
func startServers() (all []server, stop func(), err error) {
	folder, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, nil, err
	}
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
		_ = os.RemoveAll(folder)
	}
	for name, h := range map[string]http.Handler{"go-mux": goMux(), "go-path": http.HandlerFunc(goPath)} {
		s := httptest.NewServer(h)
		stops = append(stops, s.Close)
		all = append(all, server{name, s.Listener.Addr().String()})
	}
	addrs, end, err := launchNginx(folder)
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("start nginx: %w", err)
	}
	stops = append(stops, end)
	all = append(all, server{"nginx", addrs[0]}, server{"nginx-unmerged", addrs[1]})
	for _, c := range []struct {
		file    string
		names   []string
		command []string
	}{
		{"node.js", []string{""}, []string{"node"}},
		{"Jdk.java", []string{"jdk"}, []string{"java"}},
		{"Tomcat10.java", []string{"tomcat", "tomcat-lenient"}, []string{"java", "-cp", tomcat}},
	} {
		addrs, end, err := launch(folder, c.file, c.command)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("start %s: %w", c.file, err)
		}
		stops = append(stops, end)
		for i, name := range c.names {
			all = append(all, server{name, addrs[i]})
		}
	}
	return all, stop, nil
}

// launch runs a program that prints its ports.
func launch(folder, file string, command []string) (addrs []string, stop func(), err error) {
	text, err := sources.ReadFile("servers/" + file)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(folder, file)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(command[0], append(command[1:], path)...)
	cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS=-Djava.io.tmpdir="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("it did not say its port: %w", err)
	}
	for port := range strings.FieldsSeq(line) {
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", port))
	}
	return addrs, stop, nil
}

func goMux() http.Handler {
	mux := http.NewServeMux()
	for _, route := range routes {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tell(w, "go-mux", route, r.URL.Path) })
		mux.Handle("/"+route, h)
		mux.Handle("/"+route+"/", h)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { tell(w, "go-mux", "other", r.URL.Path) })
	return mux
}

// goPath is a handler that looks at the path by itself.
func goPath(w http.ResponseWriter, r *http.Request) {
	for _, route := range routes {
		if p := r.URL.Path; p == "/"+route || strings.HasPrefix(p, "/"+route+"/") {
			tell(w, "go-path", route, p)
			return
		}
	}
	tell(w, "go-path", "other", r.URL.Path)
}

func tell(w http.ResponseWriter, name, route, path string) {
	fmt.Fprintf(w, "%s %s %s\n", name, route, strconv.QuoteToASCII(path))
}
