package contestant

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

func ululeLimiter() Contestant {
	return Contestant{
		Name:    "ulule/limiter, memory",
		Version: "github.com/ulule/limiter/v3 v3.11.2",
		Make: func(q Quota) func() Run {
			store := memory.NewStoreWithOptions(limiter.StoreOptions{
				Prefix: limiter.DefaultPrefix,
				// Its cleaner walks all keys every 30 s by default and would
				// do so while somebody else is being measured.
				CleanUpInterval: time.Hour,
			})
			lim := limiter.New(store, limiter.Rate{Period: q.Period, Limit: q.Events})
			ctx := context.Background()
			return shared(func(keys []string) (admitted int) {
				for _, key := range keys {
					c, err := lim.Get(ctx, key)
					if err == nil && !c.Reached {
						admitted++
					}
				}
				return admitted
			})
		},
	}
}
