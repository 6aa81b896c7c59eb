package rls

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// HTTP returns what envoyproxy/ratelimit offers over HTTP: POST /json asks as ShouldRateLimit
// does, /healthcheck says whether this server should be asked, /rlconfig shows the rules.
func (s *Server) HTTP() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /json", s.json)
	mux.HandleFunc("GET /healthcheck", s.healthcheck)
	mux.HandleFunc("GET /rlconfig", s.rlconfig)
	return mux
}

// json answers a RateLimitRequest in JSON: 200, 429 if the call is refused, 400 if it makes no
// sense.
func (s *Server) json(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err != nil {
		code := http.StatusBadRequest
		if _, ok := err.(*http.MaxBytesError); ok {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, http.StatusText(code), code)
		return
	}
	in := new(pb.RateLimitRequest)
	if err := protojson.Unmarshal(body, in); err != nil {
		http.Error(w, "This is not a RateLimitRequest in JSON.", http.StatusBadRequest)
		return
	}
	out, err := s.ShouldRateLimit(r.Context(), in)
	if err != nil {
		code := http.StatusInternalServerError
		if status.Code(err) == codes.InvalidArgument {
			code = http.StatusBadRequest
		}
		http.Error(w, status.Convert(err).Message(), code)
		return
	}
	text, err := protojson.Marshal(out)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if out.OverallCode == pb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text)
}

// healthcheck answers 200, or 500 once Drain was called.
func (s *Server) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "OK")
}

// rlconfig lists the rules of all domains, one per line.
func (s *Server) rlconfig(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	set := s.o.Domains()
	for _, name := range set.Domains() {
		for _, r := range set.Domain(name).Rules() {
			if r.Unlimited {
				fmt.Fprintf(w, "%s: unlimited\n", r.Path)
				continue
			}
			fmt.Fprintf(w, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n",
				r.Path, strings.ToUpper(r.Unit.String()), r.RequestsPerUnit, r.Shadow, r.Quota)
		}
	}
}
