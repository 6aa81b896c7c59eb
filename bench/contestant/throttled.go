package contestant

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

func throttledGCRA() Contestant {
	return Contestant{
		Name:    "throttled, memstore",
		Version: "github.com/throttled/throttled/v2 v2.15.0",
		Make: func(q Quota) func() Run {
			store := must(memstore.NewCtx(0)) // 0 means unbounded; its bound is an LRU, which forgets debtors
			lim := must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
				MaxRate:  throttled.PerDuration(int(q.Events), q.Period),
				MaxBurst: int(q.Burst) - 1, // it counts what may pass beyond the first
			}))
			ctx := context.Background()
			return shared(func(keys []string) (admitted int) {
				for _, key := range keys {
					limited, _, err := lim.RateLimitCtx(ctx, key, 1)
					if err == nil && !limited {
						admitted++
					}
				}
				return admitted
			})
		},
	}
}
