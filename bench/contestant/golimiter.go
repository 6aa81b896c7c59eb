package contestant

import (
	"context"

	"github.com/sethvargo/go-limiter/memorystore"
)

func goLimiter() Contestant {
	return Contestant{
		Name:    "sethvargo/go-limiter, memorystore",
		Version: "github.com/sethvargo/go-limiter v0.7.1",
		Make: func(q Quota) func() Run {
			store := must(memorystore.New(&memorystore.Config{Tokens: uint64(q.Events), Interval: q.Period}))
			ctx := context.Background()
			return shared(func(keys []string) (admitted int) {
				for _, key := range keys {
					_, _, _, ok, err := store.Take(ctx, key)
					if err == nil && ok {
						admitted++
					}
				}
				return admitted
			})
		},
	}
}
