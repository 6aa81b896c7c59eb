package httplimit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// call is a request of gRPC, or of another type.
func call(kind ...string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method, r.ProtoMajor, r.ProtoMinor = http.MethodPost, 2, 0
		r.Header["Content-Type"] = kind
	}
}

func TestRefusedCallsOfGRPC(t *testing.T) {
	h := refusing(Options{}, "burst", tidegate.Decision{RetryAfter: 14500 * time.Millisecond})
	f := func(grpc bool, edit func(*http.Request)) {
		t.Helper()
		w := get(h, edit)
		status, kind := w.Header().Get("Grpc-Status"), w.Header().Get("Content-Type")
		switch {
		case w.Header().Get("Retry-After") != "15" || w.Header().Get("RateLimit") != `"burst";r=0;t=15`:
			t.Errorf("headers %v", w.Header())
		case grpc && (w.Code != 200 || status != "8" || kind != "application/grpc" || w.Body.Len() > 0 ||
			w.Header().Get("Grpc-Retry-Pushback-Ms") != "14500" || w.Header().Get("Grpc-Message") != "The quota of the policy burst is used up; try again in 15 s."):
			t.Errorf("a call of gRPC: %d %v %q", w.Code, w.Header(), w.Body)
		case !grpc && (w.Code != 429 || status != "" || w.Header().Get("Grpc-Retry-Pushback-Ms") != "" || kind != "application/problem+json"):
			t.Errorf("not a call of gRPC: %d %v", w.Code, w.Header())
		}
	}
	for _, kind := range []string{"application/grpc", "application/grpc+proto", "application/grpc+json", "Application/GRPC", "application/grpc;x=y", "application/grpc ; x=y"} {
		f(true, call(kind))
	}
	for _, kind := range []string{"", "application/grpc-web", "application/grpc-web+proto", "application/grpcx", "application/json", "text/application/grpc", " application/grpc"} {
		f(false, call(kind))
	}
	f(false, call("application/grpc", "application/json"))
	for _, edit := range []func(*http.Request){
		func(r *http.Request) { r.Method = http.MethodGet },
		func(r *http.Request) { r.ProtoMajor, r.ProtoMinor = 1, 1 },
	} {
		f(false, func(r *http.Request) { call("application/grpc")(r); edit(r) })
	}
	f(false, func(*http.Request) {})
}

func TestCodesOfGRPC(t *testing.T) {
	f := func(d tidegate.Decision, terms *tidegate.Terms, algorithm tidegate.Algorithm, code, pushback, message string) {
		t.Helper()
		l := tidegate.MustLimit(tidegate.Spec{Name: "plan", Events: 5, Period: time.Minute})
		if algorithm == tidegate.Deny {
			l = tidegate.MustLimit(tidegate.Spec{Name: "plan", Algorithm: tidegate.Deny})
		}
		own := *l
		own.Terms = terms
		d.Limit = &own
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/a.B/C", nil)
		call("application/grpc")(r)
		Options{}.Front().Answer(w, r, &d)
		h := w.Header()
		retry := map[string]string{"1000": "1", "60000": "60", "60001": "61"}[pushback]
		if pushback == "60001" { // too long to wait for without being asked
			pushback = "-1"
		}
		if w.Code != 200 || h.Get("Grpc-Status") != code || h.Get("Retry-After") != retry ||
			h.Get("Grpc-Retry-Pushback-Ms") != pushback || !strings.Contains(h.Get("Grpc-Message"), message) {
			t.Errorf("%d %v, want code %s, Retry-After %q, pushback %s, %q", w.Code, h, code, retry, pushback, message)
		}
	}
	wait := tidegate.Decision{RetryAfter: time.Second}
	f(wait, nil, 0, "8", "1000", "used up")
	f(tidegate.Decision{RetryAfter: time.Minute}, nil, 0, "8", "60000", "used up")
	f(tidegate.Decision{RetryAfter: time.Minute + 1}, nil, 0, "8", "60001", "used up")
	f(tidegate.Decision{Never: true}, nil, 0, "8", "-1", "can ever admit")
	f(tidegate.Decision{Err: errors.New("away"), RetryAfter: time.Second}, nil, 0, "14", "1000", "cannot be checked")
	f(tidegate.Decision{Err: ErrMissing}, nil, 0, "16", "-1", "does not say who")
	f(tidegate.Decision{Never: true}, nil, tidegate.Deny, "7", "-1", "does not allow")
	unidentified := &tidegate.Terms{Answer: tidegate.Answer{Status: 400, Unidentified: true, Message: "no user"}}
	f(tidegate.Decision{Never: true}, unidentified, tidegate.Deny, "16", "-1", "no user")
	for status, code := range map[int]string{400: "3", 401: "16", 402: "8", 403: "7", 404: "5", 409: "8", 429: "8", 500: "13", 502: "14", 503: "14", 504: "14", 599: "13"} {
		f(wait, &tidegate.Terms{Answer: tidegate.Answer{Status: status, Message: "caf\u00e9 100%\r\nGrpc-Status: 0", Body: "{}"}}, 0, code, "1000", "caf%C3%A9 100%25%0D%0AGrpc-Status: 0")
	}
}

// A proxy that asks about a call goes by the HTTP status: 200 would admit what is refused.
func TestProxiesOfGRPCAreToldByHTTP(t *testing.T) {
	d := tidegate.Decision{Limit: tidegate.PerMinute(5), RetryAfter: time.Second}
	for status, want := range map[int]int{0: 429, 403: 403} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/a.B/C", nil)
		call("application/grpc")(r)
		Options{}.Front().Refuse(w, r, &d, status)
		if w.Code != want || w.Header().Get("Grpc-Status") != "" {
			t.Errorf("%d %v, want %d", w.Code, w.Header(), want)
		}
	}
}

// FuzzGRPCMessage holds messages to what a header may have, and to be read back as they were.
func FuzzGRPCMessage(f *testing.F) {
	for _, s := range []string{"", "a b", "100%", "\r\n", "caf\u00e9", "\xff\x00", "%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sent := grpcMessage(s)
		for i := range len(sent) {
			if sent[i] < ' ' || sent[i] > '~' {
				t.Fatalf("%q has byte %#x", sent, sent[i])
			}
		}
		if back, err := url.PathUnescape(sent); err != nil || back != s {
			t.Fatalf("%q is read as %q: %v", s, back, err)
		}
	})
}
