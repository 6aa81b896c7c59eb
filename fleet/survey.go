package fleet

import (
	"context"

	"tidegate.dev/tidegate"
)

// Survey is [redis.Store.Survey]: what other limits would make of the keys that the fleet
// counts. Limits with the consistency split or eventual are counted by each instance, and not
// seen.
func (s *Store) Survey(ctx context.Context, asked [][]tidegate.Check, names [][]string, f func(i int, key string, left []int64)) (seen []float64, err error) {
	return s.redis.Survey(ctx, asked, names, f)
}
