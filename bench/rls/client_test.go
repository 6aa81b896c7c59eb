package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/envoyproxy"
	"tidegate.dev/tidegate/bench/internal/served"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// clientConfig is nested, exempts a value, and has limits that are used up soon, by windows that
// do not end in a test.
const clientConfig = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 2 }
  - key: user
    value: guest
    rate_limit: { unit: minute, requests_per_unit: 0 }
  - key: user
    value: staff
    rate_limit: { unlimited: true }
  - key: route
    value: login
    descriptors:
      - key: user
        rate_limit: { unit: month, requests_per_unit: 1 }
`

// The client command of envoyproxy/ratelimit, as it is released, asks tidegate serve.
func TestReleasedClient(t *testing.T) {
	runtime.LockOSThread() // the server is told to end with the thread that started it
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	testdep.Need(t, "go")
	if err := envoyproxy.Fetch(ctx); err != nil {
		testdep.Missing(t, "the released module of envoyproxy/ratelimit", "let the go command download modules: "+err.Error())
	}
	dir := t.TempDir()
	client, err := envoyproxy.Build(ctx, dir, envoyproxy.Client)
	if err != nil {
		t.Fatal(err)
	}
	program, err := served.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := served.Certificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte(clientConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, door := range []struct {
		name         string
		flags, asked []string
	}{
		{"plain", nil, nil},
		{"TLS", []string{"--rls.tls.cert=" + cert, "--rls.tls.key=" + key}, []string{"-grpc-use-tls", "-grpc-server-ca-file", cert}},
	} {
		t.Run(door.name, func(t *testing.T) {
			address, err := daemon.FreeAddress()
			if err != nil {
				t.Fatal(err)
			}
			g, err := served.Start(ctx, program, append([]string{"--demo", "--rules=" + rules, "--listen.rls=" + address}, door.flags...)...)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Stop()
			asClient(t, func(domain string, descriptors ...string) string {
				args := append([]string{"-dial_string", address, "-domain", domain}, door.asked...)
				for _, d := range descriptors {
					args = append(args, "-descriptors", d)
				}
				return askByClient(ctx, t, client, args)
			})
		})
	}
}

// asClient compares what the client prints.
func asClient(t *testing.T, ask func(domain string, descriptors ...string) string) {
	f := func(want, domain string, descriptors ...string) {
		t.Helper()
		if got := ask(domain, descriptors...); !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("%s %q:\ngot  %s\nwant %s", domain, descriptors, got, want)
		}
	}
	status := func(code, limit string, remaining int) string {
		left := ""
		if remaining > 0 {
			left = fmt.Sprintf(" limit_remaining:%d", remaining)
		}
		return fmt.Sprintf(`statuses:{code:%s current_limit:{%s}%s duration_until_reset:{seconds:\d+}}`, code, limit, left)
	}
	const year, minute, month = "requests_per_unit:2 unit:YEAR", "unit:MINUTE", "requests_per_unit:1 unit:MONTH"
	f("overall_code:OK "+status("OK", year, 1), "shop", "user=ann")
	f("overall_code:OK "+status("OK", year, 0), "shop", "user=ann")
	const slip = ` response_headers_to_add:{key:"Refusal-Slip" value:"rs1_[\w-]+"}`
	f("overall_code:OVER_LIMIT "+status("OVER_LIMIT", year, 0)+slip, "shop", "user=ann")
	f("overall_code:OVER_LIMIT "+status("OVER_LIMIT", minute, 0)+slip, "shop", "user=guest")
	f("overall_code:OK statuses:{code:OK limit_remaining:4294967295}", "shop", "user=staff")
	f("overall_code:OK "+status("OK", month, 0)+" "+status("OK", year, 1), "shop", "route=login,user=ben", "user=ben")
	f("overall_code:OVER_LIMIT "+status("OVER_LIMIT", month, 0)+" "+status("OK", year, 0)+slip, "shop", "route=login,user=ben", "user=ben")
	f("overall_code:OK statuses:{code:OK}", "shop", "route=login") // not as deep as the limit
	f("overall_code:OK statuses:{code:OK}", "elsewhere", "user=ann")
	f("rpc error: code = InvalidArgument desc = .*", "", "user=ann")
	f("rpc error: code = InvalidArgument desc = .*", "shop")
}

var space = regexp.MustCompile(`\s+`)

// askByClient runs the client and returns its response or its error, on one line with single
// spaces: those of a printed message vary on purpose.
func askByClient(ctx context.Context, t *testing.T, client string, args []string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, client, args...).CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		for _, prefix := range []string{"response: ", "request error: "} {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
				return strings.ReplaceAll(space.ReplaceAllString(text, " "), " }", "}")
			}
		}
	}
	return string(out)
}
