package main

import (
	"context"
	"fmt"
	"net/url"
)

// used is how much of a counter the store says is used. who is "name=value", or "" for a
// rule that counts everyone.
func (n *node) used(ctx context.Context, rule, who string) (int64, error) {
	q := url.Values{"rule": {rule}}
	if who != "" {
		q.Set("as", who)
	}
	var keys struct {
		Counters []struct{ Remaining, Capacity int64 }
	}
	if err := getJSON(ctx, n.admin+"/keys?"+q.Encode(), &keys); err != nil {
		return 0, err
	}
	if len(keys.Counters) != 1 {
		return 0, fmt.Errorf("%d counters of %s for %q, want one", len(keys.Counters), rule, who)
	}
	return keys.Counters[0].Capacity - keys.Counters[0].Remaining, nil
}
