package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// slogLine is what log/slog makes of a record, in the order of ours.
func slogLine(r *Record, text bool) string {
	var b bytes.Buffer
	var h slog.Handler = slog.NewJSONHandler(&b, nil)
	if text {
		h = slog.NewTextHandler(&b, nil)
	}
	ms := func(d time.Duration) any {
		n := float64(d.Microseconds()) / 1000
		if text { // in which slog would write an hour as 3.6e+06
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
		return n
	}
	line := slog.NewRecord(r.Time.Add(r.Duration), slog.LevelInfo, "request", 0)
	if r.Door != "" {
		line.Add("door", r.Door)
		if r.Client.IsValid() {
			line.Add("client", clientText(r.Client))
		}
		for _, pair := range [][2]string{{"method", r.Method}, {"host", r.Host}, {"path", r.Path}} {
			if pair[1] != "" {
				line.Add(pair[0], pair[1])
			}
		}
	} else {
		line.Add("id", r.ID, "client", clientText(r.Client), "method", r.Method, "host", r.Host, "path", r.Path, "proto", r.Proto,
			"status", r.Status, "sent", r.Sent, "received", r.Received, "duration_ms", ms(r.Duration))
	}
	some := func(name, value string) {
		if value != "" {
			line.Add(name, value)
		}
	}
	some("decision", r.Decision)
	some("decided_by", r.DecidedBy)
	some("rule", r.Rule)
	if r.Limit != nil {
		some("limit", limitText(r.Limit))
		some("scope", r.Limit.Scope)
	}
	some("key", r.Key)
	if r.Wait > 0 {
		line.Add("wait_ms", ms(r.Wait))
	}
	if r.Upstream != "" {
		line.Add("upstream", r.Upstream, "upstream_ms", ms(r.UpstreamTime))
	}
	if r.Retries > 0 {
		line.Add("retries", r.Retries)
	}
	some("reason", r.Reason)
	if r.Cut {
		line.Add("cut", true)
	}
	_ = h.Handle(context.Background(), line) // into memory
	return b.String()
}

func ourLine(r *Record, text bool) string {
	var b bytes.Buffer
	(&Log{To: &b, Text: text}).Write(r)
	return b.String()
}

// Lines that we write ourselves are those that log/slog wrote, byte by byte.
func TestLogLineIsThatOfSlog(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: 5, Period: time.Minute})
	at := time.Date(2026, 11, 15, 19, 30, 0, 120_000_000, time.FixedZone("", 9*3600))
	for _, r := range []Record{
		{Time: at},
		{Time: at, Door: "resp"},
		{Time: at, Door: "check", Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", Host: "a", Path: "/b", Decision: "refused", Rule: "api", Limit: l, Key: "k"},
		{Time: at, ID: "7", Client: netip.MustParseAddr("2001:db8::1"), Method: "GET", Host: "example.com", Path: "/a b", Proto: "HTTP/2.0", Status: 200, Sent: 1 << 40, Duration: 1234567},
		{Time: at, Decision: "refused", DecidedBy: "redis", Rule: "api", Limit: l, Key: "73475cb40a568e8d", Status: 429, Duration: 999},
		{Time: at, Decision: "waited", DecidedBy: "local", Rule: "api", Wait: 1500 * time.Microsecond, Upstream: "http://127.0.0.1:9000", UpstreamTime: time.Hour, Retries: 1},
		{Time: at.UTC(), Reason: "The path is \"odd\" = bad.", Cut: true, Path: "/\x00\x1f\x7f\xff\u2028é\\"},
	} {
		for _, text := range []bool{false, true} {
			if got, want := ourLine(&r, text), slogLine(&r, text); got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		}
	}
}

// A value that is too long is cut, whatever is at the cut.
func TestLongValues(t *testing.T) {
	for _, path := range []string{strings.Repeat("x", 10*maxValue), strings.Repeat("\xf0", 10*maxValue), strings.Repeat("é", maxValue)} {
		line := ourLine(&Record{Path: path}, false)
		if len(line) > 7*maxValue || !json.Valid([]byte(line)) || strings.Count(line, "\n") != 1 {
			t.Errorf("a line of %d bytes: %.100s", len(line), line)
		}
	}
}

func FuzzLogLine(f *testing.F) {
	for _, s := range []string{"", "plain", "with space", "\"quoted\"", "a=b", "\\", "\x00\x01\b\f\n\r\t\x1f\x7f", "\xff\xfe", "é", "\u2028\u2029\ufffd", "<&>", "🙂", " ", "a\u00a0b", "\u200b"} {
		f.Add(s, s, int64(1234567))
	}
	f.Fuzz(func(t *testing.T, path, key string, took int64) {
		path, key = path[:min(len(path), maxValue)], key[:min(len(key), maxValue)] // longer ones are cut
		took %= int64(240 * time.Hour)
		r := &Record{Time: time.Unix(1_800_000_000, 0), Path: path, Key: key, Duration: time.Duration(took), Wait: time.Duration(took)}
		for _, text := range []bool{false, true} {
			if text && strings.Contains(path+key, "\x7f") { // we quote it, slog does not
				continue
			}
			if got, want := ourLine(r, text), slogLine(r, text); got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		}
		var read struct{ Path, Key string }
		if err := json.Unmarshal([]byte(ourLine(r, false)), &read); err != nil {
			t.Fatal(err)
		}
		var want struct{ Path, Key string }
		again, _ := json.Marshal(struct{ Path, Key string }{path, key})
		if err := json.Unmarshal(again, &want); err != nil || read != want {
			t.Errorf("read back as %q, encoding/json as %q", read, want)
		}
	})
}

func TestKeysAreShown(t *testing.T) {
	f := func(k Keys, scope, key, want string) {
		t.Helper()
		l := tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: scope, Events: 5, Period: time.Minute})
		if got := k.show(key, l); got != want {
			t.Errorf("%q is shown as %q, want %q", key, got, want)
		}
	}
	const secret, hash = "42", "73475cb40a568e8d" // printf 42 | sha256sum
	f(Hashed, "user", secret, hash)
	f(Hashed, "ip", "192.0.2.1", "192.0.2.1")
	f(Hashed, "ip", "2001:db8::/64", "2001:db8::/64")
	f(Hashed, "ip", "@", "@")
	f(Hashed, "everyone", "", "")
	f(Hashed, "user,ip", tidegate.Key(secret, "192.0.2.1"), hash+",192.0.2.1")
	f(Hashed, "user,ip", tidegate.Key(strings.Repeat("x", 99), "192.0.2.1"), hashed(tidegate.Key(strings.Repeat("x", 99), "192.0.2.1")))
	f(Hashed, "user", "2:42", hashed("2:42"))
	f(Plain, "user", secret, secret)
	f(Off, "user", secret, "")
	f(Off, "ip", "192.0.2.1", "")
}

func BenchmarkLogLine(b *testing.B) {
	r := &Record{
		Time: time.Now(), ID: "787cc869a79813cbc8fc1f75920064a4", Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", Host: "example.com",
		Path: "/api/things", Proto: "HTTP/1.1", Status: 200, Sent: 512, Duration: 123456, Decision: "ok", DecidedBy: "memory", Rule: "api",
		Upstream: "http://127.0.0.1:9000", UpstreamTime: 100000,
	}
	log := Log{To: nowhere{}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			log.Write(r)
		}
	})
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
