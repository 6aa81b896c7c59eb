package grpclimit

import (
	"context"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
)

// Status returns the HTTP status of a code, as google.rpc.Code has it: 401 for
// UNAUTHENTICATED, 499 for CANCELLED. Rules that count by status go by it.
func Status(c codes.Code) int {
	if int(c) < len(statuses) {
		return statuses[c]
	}
	return http.StatusInternalServerError
}

var statuses = [...]int{
	codes.OK: 200, codes.Canceled: 499, codes.Unknown: 500, codes.InvalidArgument: 400, codes.DeadlineExceeded: 504,
	codes.NotFound: 404, codes.AlreadyExists: 409, codes.PermissionDenied: 403, codes.ResourceExhausted: 429,
	codes.FailedPrecondition: 400, codes.Aborted: 409, codes.OutOfRange: 400, codes.Unimplemented: 501,
	codes.Internal: 500, codes.Unavailable: 503, codes.DataLoss: 500, codes.Unauthenticated: 401,
}

// codeOf returns the code that the server sends for an error of a handler.
func codeOf(err error) codes.Code {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	return st.Code()
}

type visitKey struct{}

// SetCost tells the true cost of a call that a rule has charged on an estimate, whatever the
// source that the rule names for it. The last one that the handler tells before it returns
// counts. It does nothing for other calls.
func SetCost(ctx context.Context, cost int64) {
	v, _ := ctx.Value(visitKey{}).(*tidegate.Visit)
	for _, source := range v.Sources() {
		v.Found(source, cost)
	}
}
