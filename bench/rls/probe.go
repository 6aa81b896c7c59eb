package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// probe reports whether those that decide do: nobody wins by saying yes to everything.
func (s *site) probe(ctx context.Context) error {
	var errs []error
	for _, e := range s.deciding {
		if err := e.probe(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
		}
	}
	return errors.Join(errs...)
}

// probe asks about fresh values: a scarce limit refuses the second call, and the others count
// every call.
func (e *entrant) probe(ctx context.Context) error {
	fresh := fmt.Sprintf("probe:%d", time.Now().UnixNano())
	for i, want := range []pb.RateLimitResponse_Code{pb.RateLimitResponse_OK, pb.RateLimitResponse_OVER_LIMIT} {
		res, err := call(ctx, e.address, descriptor(scarce, fresh))
		if err != nil {
			return err
		}
		if res.OverallCode != want {
			return fmt.Errorf("call %d about a limit of one is %s, want %s", i+1, res.OverallCode, want)
		}
	}
	all := make([]*common.RateLimitDescriptor, e.descriptors)
	for i := range all {
		all[i] = descriptor(entryKey(i), fresh)
	}
	for i := range uint32(3) {
		res, err := call(ctx, e.address, all...)
		if err != nil {
			return err
		}
		if len(res.Statuses) != len(all) {
			return fmt.Errorf("%d statuses for %d descriptors", len(res.Statuses), len(all))
		}
		for _, status := range res.Statuses {
			limit, want := status.GetCurrentLimit().GetRequestsPerUnit(), 1_000_000-i-1
			if limit != 1_000_000 || status.LimitRemaining != want || status.DurationUntilReset.AsDuration() <= 0 {
				return fmt.Errorf("call %d leaves %d of %d, want %d", i+1, status.LimitRemaining, limit, want)
			}
		}
	}
	return nil
}

// call asks once.
func call(ctx context.Context, address string, descriptors ...*common.RateLimitDescriptor) (*pb.RateLimitResponse, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return pb.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &pb.RateLimitRequest{Domain: domain, Descriptors: descriptors})
}

// ask is for servers that are coming up.
func ask(ctx context.Context, address string, statuses int) error {
	res, err := call(ctx, address, descriptor(entryKey(0), "up"))
	if err == nil && len(res.Statuses) != statuses {
		err = fmt.Errorf("%d statuses", len(res.Statuses))
	}
	return err
}
