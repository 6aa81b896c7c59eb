// Package envoyproxy runs envoyproxy/ratelimit, the rate limit service that Envoy's own project
// releases, and its client command. Both are built from the released module, which is pinned in
// a module of its own, released/go.mod, with the versions of its dependencies that it asks for
// itself. Start with [Build].
package envoyproxy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// module is what is released; the commands are packages of it.
const module = "github.com/envoyproxy/ratelimit"

// The commands of the module.
const (
	Service = "service_cmd"
	Client  = "client_cmd"
)

// Fetch makes sure that the module and everything it needs are on this machine.
func Fetch(ctx context.Context) error {
	_, err := goCommand(ctx, "mod", "download")
	return err
}

// Build compiles one of the commands into dir and returns its file.
func Build(ctx context.Context, dir, command string) (string, error) {
	file := filepath.Join(dir, command)
	_, err := goCommand(ctx, "build", "-o", file, module+"/src/"+command)
	return file, err
}

// Version describes the module that program was built from.
func Version(ctx context.Context, program string) string {
	out, _ := exec.CommandContext(ctx, goTool(), "version", "-m", program).Output()
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 3 && (f[0] == "dep" || f[0] == "mod") {
			versions[f[1]] = f[2]
		}
	}
	return fmt.Sprintf("envoyproxy/ratelimit %s with grpc-go %s, from its released module", versions[module], versions["google.golang.org/grpc"])
}

// Start runs the service in dir with the limits of config, on Redis, and returns before it
// listens. Its statistics are off, which is in its favour; everything else that matters for its
// speed is as it is by default, but for env.
func Start(program, dir, config, redis string, env ...string) (*daemon.Server, error) {
	limits := filepath.Join(dir, "ratelimit", "config")
	if err := os.MkdirAll(limits, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(limits, "config.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	var ports [3]string // gRPC, HTTP, debugging
	var address string
	for i := range ports {
		free, err := daemon.FreeAddress()
		if err != nil {
			return nil, err
		}
		if _, ports[i], err = net.SplitHostPort(free); err != nil {
			return nil, err
		}
		if i == 0 {
			address = free
		}
	}
	env = append([]string{
		"GRPC_HOST=127.0.0.1", "GRPC_PORT=" + ports[0],
		"HOST=127.0.0.1", "PORT=" + ports[1], "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + ports[2],
		"RUNTIME_ROOT=" + dir, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis,
		"DISABLE_STATS=true", "LOG_LEVEL=ERROR",
	}, env...)
	return daemon.Start("envoyproxy/ratelimit", dir, address, env, program)
}

func goTool() string { return cmp.Or(os.Getenv("GO"), "go") }

// goCommand runs the go tool in the module that pins what is released.
func goCommand(ctx context.Context, args ...string) (string, error) {
	here, err := run(exec.CommandContext(ctx, goTool(), "list", "-f", "{{.Dir}}", "tidegate.dev/tidegate/bench/internal/envoyproxy"))
	if err != nil {
		return "", fmt.Errorf("find the source; run this from the folder bench, as make does: %w", err)
	}
	cmd := exec.CommandContext(ctx, goTool(), args...)
	cmd.Dir = filepath.Join(here, "released")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return run(cmd)
}

func run(cmd *exec.Cmd) (string, error) {
	var output bytes.Buffer
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &output)
	}
	return strings.TrimSpace(string(out)), nil
}
