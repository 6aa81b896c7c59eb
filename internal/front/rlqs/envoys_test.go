package rlqs_test

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/quotafilter"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rlqs"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

var lasts = flag.Duration("lasts", 4*time.Second, "how long Envoys send requests in tests on sockets; from 30s on, times are short and most of the bucket has to be used")

// demanding reports whether the test is about how much is used. That takes a minute, and a machine
// that has nothing else to do.
func demanding() bool { return *lasts >= 30*time.Second }

// terms are short times, or those that a busy machine can keep, with the burst that they need.
func terms() (times ledger.Times, burst int, pause time.Duration) {
	if demanding() {
		return short, 1000, 20 * time.Millisecond
	}
	return ledger.Times{TTL: time.Second, Delivery: 400 * time.Millisecond}, 3000, 100 * time.Millisecond
}

// Five Envoys of uneven demand, on sockets: for a third of the time each wants what another wanted
// before, one reconnects, all apply assignments late. Nothing is above the bucket, and nearly all of
// it is used. Then one is killed, and what it had goes to the others.
func TestFiveEnvoys(t *testing.T) {
	times, burst, pause := terms()
	t.Run("memory", func(t *testing.T) {
		testdep.Undisturbed(t, pause, func(t testing.TB) {
			_, addr := serve(t, rlqs.Options{Domains: domains(t, shop(burst)), Times: times})
			fiveEnvoys(t, times, burst, addr)
		})
	})
	t.Run("redis", func(t *testing.T) {
		server := testdep.Redis(t)
		testdep.Undisturbed(t, pause, func(t testing.TB) {
			server.Do("FLUSHALL")
			fiveEnvoys(t, times, burst, onRedis(t, server, times, burst))
		})
	})
	t.Run("redis, two instances", func(t *testing.T) {
		server := testdep.Redis(t)
		testdep.Undisturbed(t, pause, func(t testing.TB) {
			server.Do("FLUSHALL")
			fiveEnvoys(t, times, burst, onRedis(t, server, times, burst), onRedis(t, server, times, burst))
		})
	})
}

// onRedis is a server whose counters are in Redis.
func onRedis(t testing.TB, server *testdep.RedisServer, times ledger.Times, burst int) (addr string) {
	t.Helper()
	store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if !testdep.Await(time.Minute, func() bool { return store.Health().Status == fleet.OK }) {
		t.Fatalf("Redis: %+v", store.Health())
	}
	_, addr = serve(t, rlqs.Options{Domains: domains(t, shop(burst)), Times: times, Store: store})
	return addr
}

// The demands of Envoys: at first, in the middle, and after the end.
var demands = [3][5]float64{{40, 120, 300, 600, 1200}, {1200, 600, 40, 120, 300}, {600, 600, 600, 600, 600}}

func fiveEnvoys(t testing.TB, times ledger.Times, burst int, addrs ...string) {
	t.Helper()
	long, began := *lasts, time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	var proxies []*proxy
	for i := range 5 {
		p := &proxy{TB: t, began: began, dial: dialTCP(addrs[i%len(addrs)]), every: 100 * time.Millisecond, late: times.Delivery / 4}
		p.demand = func(now time.Duration) float64 {
			switch {
			case now > long:
				return demands[2][i]
			case now > long/3 && now < 2*long/3:
				return demands[1][i]
			}
			return demands[0][i]
		}
		proxies = append(proxies, p)
		p.connect("shop", bucket)
		defer p.disconnect()
		working.Go(func() { p.work(ctx) })
	}
	until := func(at time.Duration) { time.Sleep(at - time.Since(began)) }
	until(long / 2)
	proxies[1].connect("shop", bucket)
	until(long)
	all := admitted(proxies, 0, long)
	used := float64(len(all)) / (1000 * long.Seconds())
	if used < 0.9 && demanding() {
		t.Errorf("%.1f%% of the bucket are used in %v", used*100, long)
	}

	until(long + 2*times.Out())
	had, before := proxies[4].perSecond(), rateOf(proxies[:4])
	proxies[4].disconnect()
	at := time.Since(began)
	until(at + times.Out() + times.Renewal() + times.Delivery)
	if after := rateOf(proxies[:4]); after < before+had*2/3 && demanding() {
		t.Errorf("one with %.0f per second was killed: the others have %.0f, %.0f before", had, after, before)
	}
	end := time.Since(began) + time.Second
	until(end)
	all = admitted(proxies, 0, end)
	if n, most := quotafilter.Above(all, 1000, float64(burst)); n > 0 {
		t.Errorf("%d of %d are above the bucket, by up to %.1f", n, len(all), most)
	}
	if last := len(admitted(proxies, end-time.Second, end)); last < 800 && demanding() {
		t.Errorf("%d of 1000 are admitted in the second after that", last)
	}
	if len(all) < 1000 {
		t.Errorf("%d admitted, of a full bucket", len(all))
	}
	t.Logf("%d admitted, %.1f%% used; %d in the last second, without the one that was killed", len(all), used*100, len(admitted(proxies, end-time.Second, end)))
}

// rateOf is the rate that proxies have.
func rateOf(proxies []*proxy) (perSecond float64) {
	for _, p := range proxies {
		perSecond += p.perSecond()
	}
	return perSecond
}

// admitted is what all proxies admitted in a time.
func admitted(proxies []*proxy, from, until time.Duration) (all []time.Duration) {
	for _, p := range proxies {
		p.mu.Lock()
		for _, at := range p.admitted {
			if at >= from && at < until {
				all = append(all, at)
			}
		}
		p.mu.Unlock()
	}
	return all
}
