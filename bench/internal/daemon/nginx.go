package daemon

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// nginxConf is nginx as one would tune it for a race: a worker per core, connections are
// kept, nothing is logged.
const nginxConf = `daemon off;
worker_processes %[1]d;
pid %[2]s/pid;
error_log stderr error;
events { worker_connections 16384; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
%[3]s}
`

// NginxArgs writes a configuration with servers, what is in its block http, into dir, and
// returns the arguments that start nginx by it.
func NginxArgs(dir, servers string) ([]string, error) {
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Appendf(nil, nginxConf, runtime.NumCPU(), dir, servers)
	return []string{"-p", dir, "-e", "stderr", "-c", conf}, os.WriteFile(conf, text, 0o600)
}

// FindNginx also looks where users have no path to.
func FindNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("nginx is missing: run scripts/bench-deps.sh as root")
}

// NginxVersion is its name and version.
func NginxVersion(program string) string {
	out, err := exec.Command(program, "-v").CombinedOutput() // nginx version: nginx/1.22.1
	_, version, ok := bytes.Cut(bytes.TrimSpace(out), []byte(": nginx/"))
	if err != nil || !ok {
		return "nginx"
	}
	return fmt.Sprintf("nginx %s", version)
}
