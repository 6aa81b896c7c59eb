package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// nginxServer is a server of nginx with a location per route. What it says of the path
// is quoted by nobody, and not read further than the route.
const nginxServer = `
  server {
    listen %s;
    merge_slashes %s;
    default_type text/plain;
    location = /denied  { return 200 "nginx denied\n"; }
    location = /limited { return 200 "nginx limited\n"; }
    location = /exempt  { return 200 "nginx exempt\n"; }
    location /denied/   { return 200 "nginx denied\n"; }
    location /limited/  { return 200 "nginx limited\n"; }
    location /exempt/   { return 200 "nginx exempt\n"; }
    location /          { return 200 "nginx other\n"; }
  }`

// launchNginx starts one nginx that merges slashes, as it does unless told not to, and
// one that does not.
func launchNginx(folder string) (addrs []string, stop func(), err error) {
	var servers strings.Builder
	for _, merge := range []string{"on", "off"} {
		l, err := net.Listen("tcp", "127.0.0.1:0") // for a port that is free
		if err != nil {
			return nil, nil, err
		}
		addrs = append(addrs, l.Addr().String())
		l.Close()
		fmt.Fprintf(&servers, nginxServer, l.Addr(), merge)
	}
	path := filepath.Join(folder, "nginx.conf")
	text := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error crit;\nevents {}\nhttp {\n  access_log off;\n"+
		"  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;%[2]s\n}\n", folder, servers.String())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("nginx", "-c", path, "-e", filepath.Join(folder, "error"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for range 200 {
		conn, err := net.Dial("tcp", addrs[1])
		if err == nil {
			conn.Close()
			return addrs, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, nil, fmt.Errorf("it does not listen on %s", addrs[1])
}
