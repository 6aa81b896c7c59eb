// Package main is a program outside of Tidegate's module: it names every public type that it is
// handed, and brings no dependency that a rate limiter has no use for.
package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/redis"
)

type program struct {
	store    *fleet.Store
	health   fleet.Health
	stats    fleet.Stats
	unasked  []fleet.Unasked
	limiter  *tidegate.Limiter
	gate     *tidegate.Gate
	decision tidegate.Decision
	set      *rules.Set
	problems rules.Problems
	domains  *envoy.Set
	doubts   envoy.Problems
	bare     *redis.Store
	config   redis.Config
}

func open(url string) (p program, err error) {
	p.store, err = fleet.Open(url, fleet.Options{
		Deadline: 20 * time.Millisecond, OnStoreFailure: tidegate.FailLocal,
		OnState:   func(h fleet.Health) { fmt.Println(h.Status, h.Since, h.Why, h.Instances, h.Connection) },
		OnUnasked: func(u fleet.Unasked) { fmt.Println(u.Rule, u.Why, u.Over) },
		OnCall:    func(time.Duration) {},
		OnTake:    func(time.Duration) {},
		Instances: func() int { return 3 },
	})
	if err != nil {
		return p, err
	}
	p.health, p.stats, p.unasked = p.store.Health(), p.store.Stats(), p.store.Unasked()
	p.limiter = tidegate.New(p.store, tidegate.PerMinute(100)).OnStoreFailure(tidegate.FailLocal)
	p.decision = p.limiter.Allow(context.Background(), "user:42")
	p.set, err = rules.Parse("rules.yaml", []byte("version: 1\nrules: []\n"), rules.Config{})
	if err == nil {
		p.problems = p.set.Warnings()
		p.gate = tidegate.NewGate(rules.NewLive(p.set), p.store)
	}
	if err == nil {
		p.domains, err = envoy.Load([]envoy.File{{Name: "envoy.yaml", Text: []byte("domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 10 } }]\n")}}, envoy.Options{})
	}
	if err == nil {
		asked := []envoy.Entry{{Key: "user", Value: "42"}}
		var domain *envoy.Domain = p.domains.Domain("shop")
		if rule := domain.Find(asked); rule != nil {
			p.decision = tidegate.New(p.store, rule.Limits...).Allow(context.Background(), rule.Key(asked))
		}
	}
	p.config = redis.Config{URL: url, Deadline: time.Second}
	return p, err
}

func main() {
	p, err := open("redis://localhost:6379")
	if err != nil {
		panic(err)
	}
	defer p.store.Close()
	http.Handle("/", httplimit.Limit(p.limiter, httplimit.IP())(httplimit.Gate(p.gate)(http.NotFoundHandler())))
	var (
		_ tidegate.Store         = p.store
		_ tidegate.Renewer       = p.store
		_ tidegate.Reserver      = p.store
		_ tidegate.Resetter      = p.store
		_ tidegate.LocalFallback = p.store
	)
	fmt.Println(p.health, p.stats, p.unasked, p.decision, p.problems, p.domains, p.doubts, p.bare, p.store.Waiting(), p.store.Instances())
}
