package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	checkName = "Tidegate, POST /v1/check"
	checkPath = "/v1/check"
	authPath  = "/v1/forward-auth"

	// question is what the load generator asks the check about.
	question = `{"method":"GET","path":"/users/42","ip":"203.0.113.9"}`
	scarce   = `{"method":"GET","path":"/scarce","ip":"203.0.113.%d"}`
)

// forwarded is what a proxy says of a request.
var forwarded = map[string]string{
	"X-Forwarded-Method": "GET", "X-Forwarded-Uri": "/users/42", "X-Forwarded-Host": "api.example.com",
	"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9",
}

// probe reports whether the doors decide: nobody wins by saying yes to everything.
func (s *site) probe(ctx context.Context) error {
	key := fmt.Sprintf("probe:%d", time.Now().UnixNano())
	once := respCommand{words: []string{"CL.THROTTLE", "", "0", "1", "86400"}}
	const yes, no = "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:86400\r\n", "*5\r\n:1\r\n:1\r\n:0\r\n:86400\r\n:86400\r\n"
	if err := errors.Join(askOnce(s.resp, once.append(nil, key), yes), askOnce(s.resp, once.append(nil, key), no)); err != nil {
		return fmt.Errorf("tidegate over RESP: %w", err)
	}
	client := int(time.Now().UnixNano() % 250)
	var errs []error
	ask := func(method, url, body string, headers map[string]string, status int, says string) {
		errs = append(errs, askHTTP(ctx, method, url, body, headers, status, says))
	}
	check, auth := "http://"+s.check+checkPath, "http://"+s.check+authPath
	ask("POST", check, question, nil, http.StatusOK, `"allowed"`)
	ask("POST", check, fmt.Sprintf(scarce, client), nil, http.StatusOK, `"allowed"`)
	ask("POST", check, fmt.Sprintf(scarce, client), nil, http.StatusOK, `"limited"`)
	ask("GET", auth, "", forwarded, http.StatusNoContent, "")
	other := map[string]string{"X-Forwarded-Method": "GET", "X-Forwarded-Uri": "/scarce", "X-Forwarded-For": fmt.Sprintf("203.0.113.%d", client)}
	ask("GET", auth, "", other, http.StatusTooManyRequests, "")
	return errors.Join(errs...)
}

func (s *site) probeNginx(ctx context.Context) error {
	return askHTTP(ctx, "GET", "http://"+s.nginx.Address+"/", "", nil, http.StatusOK, "allowed\n")
}

// askOnce sends a command and compares the reply with those that are fine.
func askOnce(address string, command []byte, fine ...string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(command); err != nil {
		return err
	}
	buf, have := make([]byte, 1024), 0
	for {
		n, err := c.Read(buf[have:])
		have += n
		reply := string(buf[:have])
		if slices.Contains(fine, reply) {
			return nil
		}
		if err != nil || strings.Count(reply, "\n") >= strings.Count(fine[0], "\n") || strings.HasPrefix(reply, "-") {
			return fmt.Errorf("the reply to %q is %q (%v), want one of %q", command, reply, err, fine)
		}
	}
}

var client = &http.Client{Timeout: 5 * time.Second}

// askHTTP compares status and body; the body must contain says.
func askHTTP(ctx context.Context, method, url, body string, headers map[string]string, status int, says string) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Close = true
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil || res.StatusCode != status || !bytes.Contains(reply, []byte(says)) {
		return fmt.Errorf("%s %s %s: %d %q (%v), want %d and %q", method, url, body, res.StatusCode, reply, err, status, says)
	}
	return nil
}
