package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// nginxConf is a proxy as one would tune it: connections are kept on both sides,
// nothing is logged, and the upstream is told who asks.
const nginxConf = `daemon off;
worker_processes %[1]d;
pid %[2]s/pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  upstream api {
    server %[4]s;
    keepalive 128;
    keepalive_requests 1000000000;
  }
  server {
    listen %[3]s;
    location / {
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`

func (s *site) nginxCommand(dir, address string) command {
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConf, runtime.NumCPU(), dir, address, s.upstream)
	return command{
		program: s.nginx,
		args:    []string{"-p", dir, "-e", "stderr", "-c", conf},
		prepare: os.WriteFile(conf, []byte(text), 0o600),
	}
}
