package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/served"
)

// nginxServers is a proxy as one would tune it: connections are kept to the upstream as
// well, which is told who asks.
const nginxServers = `  upstream api {
    server %[2]s;
    keepalive %[5]d;
    keepalive_requests 1000000000;
  }
  server {
    listen %[1]s backlog=4096%[3]s;
%[4]s    location / {
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

// keptConnections is how many unused connections to the upstream are kept where clients have
// thousands: as many as are used.
const keptConnections = 8192

// nginxCommand is nginx without TLS, nginxTLSCommand with it and HTTP/2.
func (s *site) nginxCommand(dir, address string) command { return s.nginxWith(dir, address, "", "") }

func (s *site) nginxTLSCommand(dir, address string) command {
	cert, key, err := served.Certificate(dir)
	if err != nil {
		return command{prepare: err}
	}
	return s.nginxWith(dir, address, " ssl http2", fmt.Sprintf("    ssl_certificate %s;\n    ssl_certificate_key %s;\n", cert, key))
}

func (s *site) nginxWith(dir, address, listen, settings string) command {
	args, err := daemon.NginxArgs(dir, fmt.Sprintf(nginxServers, address, s.upstream, listen, settings, keptConnections))
	return command{program: s.nginx, args: args, prepare: err}
}
