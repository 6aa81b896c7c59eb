package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// advice says what to do about errors of etcd.
var advice = []struct {
	err  error
	text string
}{
	{rpctypes.ErrRequestTooLarge, "etcd takes 1.5 MiB at once unless it runs with a higher --max-request-bytes"},
	{rpctypes.ErrTooManyOps, "etcd takes 128 files at once unless it runs with a higher --max-txn-ops"},
	{rpctypes.ErrPermissionDenied, "the user needs to read the keys of the prefix and of PREFIX.tidegate/, and to write them to publish"},
	{rpctypes.ErrAuthFailed, "the user or the password is wrong"},
	{rpctypes.ErrUserEmpty, "etcd wants a user and a password"},
	{rpctypes.ErrNoLeader, "the cluster has lost its quorum"},
	{rpctypes.ErrNoSpace, "the database is as large as its quota: compact and defragment it"},
}

// withAdvice returns err with advice, if there is any.
func withAdvice(err error) error {
	for _, a := range advice {
		if errors.Is(err, a.err) {
			return fmt.Errorf("%w (%s)", err, a.text)
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return fmt.Errorf("%w (etcd does not answer within %s)", err, callTime)
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%w (the rules are too large for one message: etcd takes 1.5 MiB unless it runs with a higher --max-request-bytes)", err)
	}
	return err
}
