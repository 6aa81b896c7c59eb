package httplimit

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// isGRPC reports whether r is a gRPC call. Its client looks for the outcome in Grpc-Status; it takes a
// bare HTTP status of 429 for an unavailable server, and tries again at once. Requests over HTTP/1 are
// never gRPC, and gRPC-Web has a content type of its own: both get HTTP answers.
func isGRPC(r *http.Request) bool {
	kind := r.Header["Content-Type"]
	if r.Method != http.MethodPost || r.ProtoMajor < 2 || len(kind) != 1 {
		return false
	}
	const name = "application/grpc"
	if len(kind[0]) < len(name) || !strings.EqualFold(kind[0][:len(name)], name) {
		return false
	}
	rest := strings.TrimLeft(kind[0][len(name):], " \t")
	return rest == "" || rest[0] == '+' || rest[0] == ';'
}

// The gRPC codes that a refusal can have.
const (
	grpcInvalidArgument   = 3
	grpcNotFound          = 5
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// grpcCode returns the gRPC code for a refusal. A call that does not say who is asking is
// UNAUTHENTICATED, although the HTTP status is 400: 401 would have to name a way to log in.
func grpcCode(d *tidegate.Decision) int {
	if errors.Is(d.Err, ErrMissing) || d.Err == nil && d.Limit != nil && d.Limit.Terms != nil && d.Limit.Terms.Answer.Unidentified {
		return grpcUnauthenticated
	}
	return codeOfStatus(Status(*d))
}

// codeOfStatus returns the gRPC code for the status that an HTTP client would get. A limit that is used
// up is RESOURCE_EXHAUSTED, even if its rule sets another status for that, such as 402.
func codeOfStatus(status int) int {
	switch status {
	case http.StatusBadRequest:
		return grpcInvalidArgument
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusNotFound:
		return grpcNotFound
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return grpcUnavailable
	}
	if status >= http.StatusInternalServerError {
		return grpcInternal
	}
	return grpcResourceExhausted
}

// maxPushback is the longest wait after which gRPC clients are told to retry by themselves.
const maxPushback = time.Minute

// refuseGRPC sends a trailers-only response: headers with the gRPC status, and no message. A gRPC
// client could not read the body that a rule may have; it gets told.Detail as the message of the
// status.
func refuseGRPC(w http.ResponseWriter, told Refusal) {
	h := w.Header()
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{strconv.Itoa(told.GRPCCode)}
	h["Grpc-Message"] = []string{grpcMessage(told.Detail)}
	h["Grpc-Retry-Pushback-Ms"] = []string{told.Pushback(maxPushback)}
	w.WriteHeader(http.StatusOK)
}

// Pushback returns the value of the trailer grpc-retry-pushback-ms, by which gRPC servers tell
// clients when to retry: the wait in milliseconds, rounded up. It is -1, which means not to
// retry, if the wait is longer than longest or trying again would not help.
func (r Refusal) Pushback(longest time.Duration) string {
	if r.RetryAfter <= 0 || r.RetryAfter > longest {
		return "-1"
	}
	return strconv.FormatInt(int64((r.RetryAfter-1)/time.Millisecond)+1, 10)
}

// grpcMessage percent-encodes what the header may not have: all but printable ASCII, and the
// percent sign.
func grpcMessage(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
