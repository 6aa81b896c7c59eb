package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// nginxServers is a proxy as one would tune it: connections are kept to the upstream as
// well, which is told who asks.
const nginxServers = `  upstream api {
    server %[2]s;
    keepalive 128;
    keepalive_requests 1000000000;
  }
  server {
    listen %[1]s;
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
`

func (s *site) nginxCommand(dir, address string) command {
	args, err := daemon.NginxArgs(dir, fmt.Sprintf(nginxServers, address, s.upstream))
	return command{program: s.nginx, args: args, prepare: err}
}
