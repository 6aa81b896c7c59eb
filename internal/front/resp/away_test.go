package resp_test

import (
	"fmt"
	"testing"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/resp"
)

// While Redis is away, an instance has its share of the limit, and who looks is told what who asks
// is. What is given back can be taken again.
func TestThrottleWhileRedisIsAway(t *testing.T) {
	for _, instances := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			server := testdep.Redis(t)
			var store *fleet.Store
			for range instances {
				one, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: testTimeout})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = one.Close() })
				store = one
			}
			testdep.Eventually(t, "other instances", func() bool { return store.Instances() == instances })
			_, c := serve(t, resp.Options{Store: store})
			ask := func(key, args string, quantity int) (limited, left int) {
				t.Helper()
				limit := 0
				answer := c.five(fmt.Sprint(key, " ", args, " ", quantity))
				if _, err := fmt.Sscan(answer, &limited, &limit, &left); err != nil {
					t.Fatalf("%s %s %d: %s", key, args, quantity, answer)
				}
				return limited, left
			}
			const sixty, single = "59 1 3600", "0 1 3600"
			ask("used", sixty, 6)
			server.Kill()
			for _, key := range []string{"used", "fresh"} {
				left := 0
				for i := range 5 {
					_, left = ask(key, sixty, 1)
					if limited, seen := ask(key, sixty, 0); limited != 0 || seen != left {
						t.Errorf("%s, take %d leaves %d; a look says %d, limited %d", key, i, left, seen, limited)
					}
				}
				if most := 60/instances - 5; left > most {
					t.Errorf("%s: %d are left, want at most %d", key, left, most)
				}
				if limited, now := ask(key, sixty, -2); limited != 0 || now != left+2 {
					t.Errorf("%s: %d are left after 2 of them were given back to %d, limited %d", key, now, left, limited)
				}
				if _, seen := ask(key, sixty, 0); seen != left+2 {
					t.Errorf("%s: a look says that %d are left after 2 were given back to %d", key, seen, left)
				}
			}
			for i, want := range [][3]int{{0, 0, 1}, {1, 0, 0}, {0, 0, 0}, {1, 1, 0}, {-1, 0, 1}, {1, 0, 0}} {
				if limited, left := ask("single", single, want[0]); limited != want[1] || left != want[2] {
					t.Errorf("number %d, a quantity of %d: limited %d, %d left, want %d and %d", i, want[0], limited, left, want[1], want[2])
				}
			}
		})
	}
}
