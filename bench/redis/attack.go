package main

import (
	"context"
	"math/rand/v2"
	"strings"

	"tidegate.dev/tidegate"
)

// attackers is how many keys ask for more than they may: enough that two of them are
// seldom asked about at once, so that joining calls does not help.
const attackers = 1000

const attackerPrefix = "bot-"

// attackLoad returns a load of which nine in ten are over their limit, which is scarce. The
// others have plenty.
func attackLoad() *load {
	bots, good := makeKeys(attackerPrefix, attackers), makeKeys("user-", users)
	return &load{
		callers: hotCallers,
		drawn: draw(func() string {
			if rand.IntN(10) > 0 {
				return bots[rand.IntN(len(bots))]
			}
			return good[rand.IntN(len(good))]
		}),
		count: attacks,
	}
}

func attacks(key string) bool { return strings.HasPrefix(key, attackerPrefix) }

func (b *bench) underAttack(ctx context.Context, f *figures) (err error) {
	f.attack, err = b.race(ctx, "under attack", attackLoad(), plenty,
		chain("Tidegate", "chain", tidegate.Terms{}), chain("Tidegate, no deny cache", "nodeny", tidegate.Terms{Handling: tidegate.Handling{NoDenyCache: true}}), plain("plain"))
	return err
}
