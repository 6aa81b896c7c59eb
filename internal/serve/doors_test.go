//go:build unix

package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const doorRules = `version: 1
rules:
  - { name: few, match: GET /few, per: ip, limits: 3/hour }
  - { name: chat, match: POST /chat, per: ip, limits: 100/hour }
  - { name: load, match: GET /load, per: everyone, limits: 10000000/hour }
`

// asks sends a question to the check API and returns the status and what it says.
func (w *sandbox) asks(client *http.Client, api, verb, question string, header ...string) (int, map[string]any) {
	w.Helper()
	r, err := http.NewRequest(http.MethodPost, api+"/v1/"+verb, strings.NewReader(question))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		w.Errorf("POST /v1/%s: %v", verb, err)
		return 0, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var said map[string]any
	_ = json.Unmarshal(text, &said)
	return answer.StatusCode, said
}

// command sends a command on a connection of its own and returns the first line of the reply.
func (w *sandbox) command(network, address string, config *tls.Config, lines ...string) string {
	w.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	if config != nil {
		c = tls.Client(c, config)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	in, reply := bufio.NewReader(c), ""
	for _, line := range lines {
		if _, err := fmt.Fprintf(c, "%s\r\n", line); err != nil {
			return err.Error()
		}
		if reply, err = readReply(in); err != nil {
			return err.Error()
		}
	}
	return reply
}

// readReply is a reply in one line: arrays with spaces, strings without their length.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSpace(line)
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(in, text)
		return string(text[:n]), err
	case '*':
		parts := make([]string, n)
		for i := range parts {
			if parts[i], err = readReply(in); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, " "), nil
	}
	return line, nil
}

// Both doors ask the counters that the gateway asks, each answer is counted under its door
// and is a line in the access log.
func testDoors(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", doorRules)
	s := w.start(nil, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--listen.check=127.0.0.1:0", "--listen.resp=unix:resp.sock")
	first := s.await(1, "serving")
	gateway, api, admin := first["gateway"].(string), first["check"].(string), first["admin"].(string)
	socket := filepath.Join(w.dir, "resp.sock")
	if got := first["resp"]; got != "unix:resp.sock" && got != "unix:"+socket {
		t.Errorf("RESP is announced at %v", got)
	}
	const question = `{"method":"GET","path":"/few","ip":"127.0.0.1"}`
	if status, said := w.asks(once, api, "check", question); status != 200 || said["decision"] != "allowed" || said["remaining"] != 2.0 {
		t.Errorf("asked over HTTP: %d %v", status, said)
	}
	if got := w.command("unix", socket, nil, "CL.THROTTLE key 1 1 60"); got != ":0 :2 :1 :-1 :60" && got != ":0 :2 :1 :-1 :59" {
		t.Errorf("CL.THROTTLE answers %q", got)
	}
	if got, _ := w.get(once, gateway+"/few"); got != 404 && got != 200 {
		t.Errorf("the gateway answers %d", got)
	}
	if got := w.command("unix", socket, nil, "TG.CHECK METHOD GET PATH /few IP 127.0.0.1"); strings.HasPrefix(got, "-") {
		t.Errorf("TG.CHECK answers %q", got)
	}
	if status, said := w.asks(once, api, "check", question); status != 200 || said["decision"] != "limited" {
		t.Errorf("the fourth of three: %d %v", status, said)
	}
	for _, want := range []string{`{door="check",outcome="ok"} 1`, `{door="check",outcome="refused"} 1`, `{door="gateway",outcome="ok"} 1`, `{door="resp",outcome="ok"} 2`} {
		if _, page := w.get(once, admin+"/metrics"); !strings.Contains(page, "tidegate_requests_total"+want) {
			t.Errorf("no requests_total%s in the metrics", want)
		}
	}
	w.until("each answer has its line", func() bool { return len(s.lines("request")) == 5 })
	doors := map[any]int{}
	for _, line := range s.lines("request") {
		doors[line["door"]]++
	}
	if doors["check"] != 2 || doors["resp"] != 2 || doors[nil] != 1 {
		t.Errorf("lines by door: %v", doors)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// Both doors read paths as the gateway is told to, and know the identities of the rules in force.
func testDoorSettings(t *testing.T, bin string) {
	rules := func(identity string) string {
		return "version: 1\nidentify: { " + identity + ": client header X-User }\nrules:\n  - { name: few, match: GET /few/, per: " + identity + ", limits: 100/hour }\n"
	}
	for setting, want := range map[string]string{"refuse": "denied", "allow": "allowed"} {
		w := newSandbox(t, bin, "rules.yaml", rules("user"))
		s := w.serve("", nil, "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.check=127.0.0.1:0", "--listen.resp=127.0.0.1:0", "--paths.encoded_slash="+setting)
		first := s.await(1, "serving")
		api, redis := first["check"].(string), strings.TrimPrefix(first["resp"].(string), "redis://")
		f := func(path, identity, want string, known bool) {
			t.Helper()
			_, said := w.asks(once, api, "check", fmt.Sprintf(`{"path":%q,"as":{%q:"ann"}}`, path, identity))
			if said["decision"] != want || want != "denied" && (said["unknown"] == nil) != known {
				t.Errorf("encoded_slash %s, %s as %s over HTTP: %v, want %s, known %t", setting, path, identity, said, want, known)
			}
			reply := w.command("tcp", redis, nil, "TG.CHECK METHOD GET PATH "+path+" AS "+identity+" ann")
			if !strings.Contains(reply, "decision "+want) || want != "denied" && strings.Contains(reply, "no identity") == known {
				t.Errorf("encoded_slash %s, %s as %s over RESP: %q, want %s, known %t", setting, path, identity, reply, want, known)
			}
		}
		f("/few/a%2Fb", "user", want, true)
		f("/few/a", "user", "allowed", true)
		f("/few/a", "account", "allowed", false)
		w.write("rules.yaml", rules("account"))
		s.signal(syscall.SIGHUP)
		s.await(1, "rules reloaded")
		f("/few/a", "account", "allowed", true)
		f("/few/a", "user", "allowed", false)
		s.signal(syscall.SIGTERM)
		if code := s.end(); code != 0 {
			t.Errorf("it exits with %d", code)
		}
	}
}

// Requests that doors refuse without the rules, and callers who may not ask, have their line in the
// access log, which says why.
func testDoorLog(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", doorRules, "token", "a token of more than 16 bytes")
	s := w.start(nil, nil, "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.check=127.0.0.1:0", "--check.token_file=token", "--listen.resp=127.0.0.1:0")
	first := s.await(1, "serving")
	api, redis := first["check"].(string), strings.TrimPrefix(first["resp"].(string), "redis://")
	n := 0
	f := func(door, client string, path any, reason string) {
		t.Helper()
		n++
		w.until("there is a line", func() bool { return len(s.lines("request")) >= n })
		lines := s.lines("request")
		got := lines[len(lines)-1]
		if said, _ := got["reason"].(string); len(lines) != n || got["door"] != door || got["client"] != client || got["path"] != path || !strings.Contains(said, reason) || got["decision"] != nil {
			t.Errorf("%d lines, the last: %v, want %s from %s about %v: %s", len(lines), got, door, client, path, reason)
		}
	}
	token := []string{"X-Tidegate-Token", "a token of more than 16 bytes"}
	w.asks(once, api, "check", `{"path":"/a/../few?secret=1","ip":"192.0.2.1"}`, token...)
	f("check", "192.0.2.1", "/a/../few", "segments")
	w.asks(once, api, "check", `{"checks":[{"path":"//few","ip":"192.0.2.2"}]}`, token...)
	f("check", "192.0.2.2", "//few", "empty")
	w.asks(once, api, "check", `{"path":"/few"}`)
	f("check", "127.0.0.1", "/v1/check", "token")
	w.asks(once, api, "forward-auth", "", "X-Original-URI", "/few", "X-Original-Method", "GET", "X-Forwarded-For", "192.0.2.3")
	f("check", "127.0.0.1", nil, "not known as a proxy")
	w.asks(once, api, "forward-auth", "", append(token, "X-Original-URI", "/few/./x?secret=1", "X-Original-Method", "GET", "X-Forwarded-For", "192.0.2.4")...)
	f("check", "192.0.2.4", "/few/./x", "segments")
	w.asks(once, api, "forward-auth", "", append(token, "X-Original-URI", "/few", "X-Forwarded-Uri", "/load", "X-Original-Method", "GET", "X-Forwarded-For", "192.0.2.5")...)
	f("check", "192.0.2.5", "/few", "contradicts")
	w.command("tcp", redis, nil, "TG.CHECK PATH /few%2Fx?secret=1 IP 192.0.2.6")
	f("resp", "192.0.2.6", "/few%2Fx", "slash")
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// Clients of the gateway see where they stand, and pay nothing for it; the upstream is not
// asked.
func testUsage(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", doorRules)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--usage=/my/limits")
	gateway, _ := s.ready()
	w.get(once, gateway+"/few")
	for range 5 {
		status, body := w.get(once, gateway+"/my/limits?path=/few")
		if status != 200 || !strings.Contains(body, `"rule":"few","limit":3,`) || !strings.Contains(body, `"used":1,"remaining":2,`) {
			t.Fatalf("%d %s", status, body)
		}
	}
	if status, _ := w.get(once, gateway+"/my/limits/x"); status == 200 {
		t.Error("a path below it is answered")
	}
}

// A process without a gateway is replaced while both doors are asked: no connection is
// refused, no question stays without an answer, nobody is refilled.
func testDoorsUpgrade(t *testing.T, bin string, flags ...string) {
	w := newSandbox(t, bin, "rules.yaml", doorRules)
	s := w.serve("", nil, append(flags, "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.check=127.0.0.1:0", "--listen.resp=127.0.0.1:0")...)
	first := s.await(1, "serving")
	api, redis := first["check"].(string), strings.TrimPrefix(first["resp"].(string), "redis://")
	if first["gateway"] != nil {
		t.Errorf("a gateway is announced: %v", first["gateway"])
	}
	for range 3 {
		w.asks(once, api, "check", `{"method":"GET","path":"/few","ip":"192.0.2.1"}`)
	}
	for range 2 {
		w.command("tcp", redis, nil, "CL.THROTTLE user 1 1 3600")
	}
	var asked, failed atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			for !stop.Load() {
				if status, said := w.asks(client, api, "check", `{"method":"GET","path":"/load","ip":"192.0.2.1"}`); status != 200 || said["decision"] != "allowed" {
					failed.Add(1)
				}
				if got := w.command("tcp", redis, nil, "TG.CHECK METHOD GET PATH /load IP 192.0.2.1", "PING"); got != "+PONG" {
					failed.Add(1)
					t.Errorf("over RESP: %q", got)
				}
				asked.Add(2)
			}
		})
	}
	w.until("questions are answered", func() bool { return asked.Load() > 20 })
	s.signal(syscall.SIGUSR2)
	next := s.await(2, "serving")
	if next["check"] != first["check"] || next["resp"] != first["resp"] {
		t.Errorf("the successor listens on %v and %v", next["check"], next["resp"])
	}
	before := asked.Load()
	w.until("questions are answered by the successor", func() bool { return asked.Load() > before+20 })
	stop.Store(true)
	wg.Wait()
	if code := s.end(); code != 0 || failed.Load() > 0 {
		t.Errorf("the predecessor exits with %d, %d of %d questions failed", code, failed.Load(), asked.Load())
	}
	if _, said := w.asks(once, api, "check", `{"method":"GET","path":"/few","ip":"192.0.2.1"}`); said["decision"] != "limited" {
		t.Errorf("who had nothing left is told %v by the successor", said)
	}
	if got := w.command("tcp", redis, nil, "CL.THROTTLE user 1 1 3600"); !strings.HasPrefix(got, ":1 ") {
		t.Errorf("a key that had nothing left is told %q by the successor", got)
	}
}

// Tokens, users and certificates are asked for, and read again when their files change.
func testDoorSecrets(t *testing.T, bin string) {
	cert, key := newCertificate(t, "doors")
	w := newSandbox(t, bin, "rules.yaml", doorRules, "token", "a token of more than 16 bytes", "users", "# who may ask\ndefault secret\nann other ann:\n",
		"cert.pem", cert, "key.pem", key)
	s := w.serve("", nil, "--listen.gateway=off", "--listen.admin=127.0.0.1:0",
		"--listen.check=127.0.0.1:0", "--check.token_file=token", "--check.tls.cert=cert.pem", "--check.tls.key=key.pem",
		"--listen.resp=127.0.0.1:0", "--resp.users_file=users", "--resp.tls.cert=cert.pem", "--resp.tls.key=key.pem")
	first := s.await(1, "serving")
	api, redis := first["check"].(string), strings.TrimPrefix(first["resp"].(string), "rediss://")
	anyone := &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: anyone, DisableKeepAlives: true}}
	const question = `{"method":"GET","path":"/load","ip":"192.0.2.1"}`
	asks := func(token string, want int) bool {
		status, _ := w.asks(client, api, "check", question, "X-Tidegate-Token", token)
		return status == want
	}
	if !asks("", 401) || !asks("another token of 16 bytes", 401) || !asks("a token of more than 16 bytes", 200) {
		t.Error("the token is not asked for")
	}
	auth := func(words, want string) bool {
		got := w.command("tcp", redis, anyone, "AUTH "+words, "CL.THROTTLE k 1 1 60")
		return strings.HasPrefix(got, want)
	}
	if !auth("secret", ":0") || !auth("ann other", ":0") || !auth("ann secret", "-NOAUTH") || !strings.HasPrefix(w.command("tcp", redis, anyone, "CL.THROTTLE k 1 1 60"), "-NOAUTH") {
		t.Error("the users are not asked for, or share their keys")
	}
	w.write("token", "the next token of 16 bytes")
	w.write("users", "ann new ann:\n")
	w.until("the next token is the one", func() bool { return asks("the next token of 16 bytes", 200) })
	w.until("the old token is none", func() bool { return asks("a token of more than 16 bytes", 401) })
	w.until("the new password is the one", func() bool { return auth("ann new", ":") })
	w.until("the user that is gone is none", func() bool { return auth("secret", "-NOAUTH") })
	w.write("users", "ann\n")
	s.signal(syscall.SIGHUP)
	s.await(1, "the users of the RESP listener could not be read again: what was read before stays in use")
	if !auth("ann new", ":") {
		t.Error("a file that cannot be read has changed the users")
	}
}

// What cannot be served is told with its line, and nothing is opened.
func testDoorMistakes(t *testing.T, bin string) {
	f := func(users, want string) {
		t.Helper()
		w := newSandbox(t, bin, "rules.yaml", doorRules, "users", users)
		s := w.serve("", nil, "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.resp=127.0.0.1:0", "--resp.users_file=users")
		if code := s.end(); code != 2 || !strings.Contains(s.logText(), want) {
			t.Errorf("users %q: exits with %d and says\n%s\nwant %s", users, code, s.logText(), want)
		}
	}
	f("ann\n", "users:1:1: error: the user has no password")
	f("\n# nobody\n", "there are no users in the file")
	f("ann a\nann b\n", "users:2:1: error: the user is there twice")
	f("ann a b c\n", "users:1:1: error: there are more than a name, a password and a prefix")
}

// The socket of a door is removed with its process.
func testDoorSocketIsGone(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", doorRules)
	s := w.serve("", nil, "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.check=unix:check.sock")
	s.await(1, "serving")
	socket := filepath.Join(w.dir, "check.sock")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	if status, said := w.asks(client, "http://check", "check", `{"path":"/few","ip":"192.0.2.1"}`); status != 200 || said["decision"] != "allowed" {
		t.Errorf("over the socket: %d %v", status, said)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
