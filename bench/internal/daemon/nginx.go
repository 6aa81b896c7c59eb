package daemon

import (
	"bytes"
	"fmt"
	"os/exec"
)

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
