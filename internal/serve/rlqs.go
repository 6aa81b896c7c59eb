package serve

import (
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/rlqs"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/internal/front/strict"
)

// newRLQS returns the quota service for Envoy, which listens where the rate limit service does.
func (s *server) newRLQS() *rlqs.Server {
	c := s.config
	o := rlqs.Options{
		Domains: s.domains,
		Desk:    s.rlsDoor.quota.desk,
		Paths:   strict.Paths{EncodedSlash: c.Paths.EncodedSlash == config.Allow},
		Times:   ledger.Times{TTL: c.RLS.Quota.TTL, Delivery: c.RLS.Quota.Delivery},
		Shadow:  c.RLS.Shadow,
		Counted: s.rlsDoor.quota.count,
		Log:     s.log,
		// After a failed upgrade, this process is its own successor.
		Successor: s.heir.Follows() || s.rlsDoor.quotas.Load() != nil,
	}
	if s.shared != nil {
		o.Store = s.limited
	}
	q := rlqs.New(o)
	s.rlsDoor.quotas.Store(q)
	return q
}
