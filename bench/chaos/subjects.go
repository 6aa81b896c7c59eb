package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A request is held to three limits, of everyone, its tenant and its user, which are on
// three masters. Everyone's is used up all the time, so that what the others charge is
// given back. The limits of tenant and user are never used up, so that what they have charged
// can be compared with what passed. When Redis cannot be asked, requests are denied.
const subjectRules = `version: 1
identify: { tenant: "path {tenant}", user: "path {user}" }
rules:
  - { name: all, match: "GET /closed/{tenant}/{user}", per: everyone, limits: { rate: 60/second, algorithm: token_bucket }, on_store_failure: deny }
  - { name: tenants, match: "GET /closed/{tenant}/{user}", per: tenant, limits: 100000/hour, on_store_failure: deny }
  - { name: users, match: "GET /closed/{tenant}/{user}", per: user, limits: 100000/hour, on_store_failure: deny }
`

const (
	subjectRate   = 60.0
	subjectEach   = 40.0            // a second on each node
	subjectAhead  = 2 * time.Second // of load before the fault
	subjectBehind = 5 * time.Second // and after it
)

var subjectHead = []string{"fault", "asked", "admitted", "at most", "too many in any stretch of time", "503, as the rule says", "replies lost", "tenant: charged", "user: charged", "leaked", "charges lost"}

// subjected is a fault of the masters while requests are held to three limits.
type subjected struct {
	name, what string
	args       []string
	steady     bool // no replica takes over soon from a master that is silent
	fault      func(*stage, *trio)
	// lossy is how many charges may be lost because a replica had not got them yet.
	lossy int64
}

// trio is a tenant and a user, and where the counters of the three limits are: everyone's, the
// tenant's and the user's, in this order.
type trio struct {
	path, tenant, user string
	at                 [3]*testdep.RedisServer
	keys               [3]string
}

var subjectFaults = []subjected{
	{
		name: "a master killed", what: "the master with everyone's counter is killed, and comes back with it after 4 s",
		args: onDisk, steady: true,
		fault: func(s *stage, t *trio) {
			t.at[0].Kill()
			s.pause(4 * time.Second)
			t.at[0].Start()
			s.pause(3 * time.Second)
		},
	},
	{
		name: "a master frozen", what: "the master with the tenant's counter stands still for 5 s",
		steady: true,
		fault: func(s *stage, t *trio) {
			t.at[1].Pause()
			s.pause(5 * time.Second)
			t.at[1].Resume()
			s.pause(2 * time.Second)
		},
	},
	{
		name: "failover", what: "the master with the user's counter is killed, its replica takes over", lossy: 3,
		fault: func(s *stage, t *trio) {
			t.at[2].Kill()
			s.pause(9 * time.Second)
		},
	},
	{
		name: "manual promotion", what: "CLUSTER FAILOVER of each of the three replicas, one after the other",
		fault: func(s *stage, _ *trio) {
			for _, r := range s.servers[masters:] {
				r.Do("CLUSTER", "FAILOVER")
				s.pause(2500 * time.Millisecond)
			}
		},
	},
	{
		name: "resharding of three slots", what: "the slot of each of the three counters moves to another master and back",
		fault: func(s *stage, t *trio) {
			for i, from := range t.at {
				slot, to := from.Do("CLUSTER", "KEYSLOT", t.keys[i]), t.at[(i+1)%len(t.at)]
				s.moveSlot(slot, from, to)
				s.moveSlot(slot, to, from)
			}
		},
	},
	{
		name: "CLIENT KILL of all masters", what: "all connections to all masters are closed, four times a second",
		fault: func(s *stage, _ *trio) {
			every(250*time.Millisecond, func(s *stage) {
				for _, r := range s.servers[:masters] {
					r.Do("CLIENT", "KILL", "TYPE", "normal")
				}
			})(s, 6*time.Second)
		},
	},
}

func subjectTrials() (all []trial) {
	for _, c := range subjectFaults {
		all = append(all, trial{"three subjects, " + c.name, c.what, func(ctx context.Context) (result, error) { return c.play(ctx) }})
	}
	return all
}

func (c subjected) play(ctx context.Context) (*finding, error) {
	f := new(finding)
	site := clustered
	if c.steady {
		site = steadyCluster
	}
	of := cast{rules: []string{subjectRules}, site: func(s *stage) []string { return site(s, c.args...) }}
	err := onStage(ctx, of, func(s *stage) {
		l := newLoad(s)
		t := s.trio(l)
		charged := func(rule, who string) int64 {
			n, err := s.fleet[0].used(s.ctx, rule, who)
			s.must(err)
			return n
		}
		unheard := func() (total int64) {
			for _, n := range s.fleet {
				one, err := n.unheard(s.ctx)
				s.must(err)
				total += one
			}
			return total
		}
		of, lost := demand{t.path: subjectEach}, unheard()
		tenant, user := charged("tenants", "tenant="+t.tenant), charged("users", "user="+t.user)
		p := l.begin(of)
		s.pause(subjectAhead)
		c.fault(s, t)
		s.pause(subjectBehind)
		l.settle(p)
		for _, n := range s.fleet {
			s.must(n.await(s.ctx, len(s.fleet)))
		}
		s.pause(time.Second) // what is given back late
		f.checkSubjects(c, p, t.path, charged("tenants", "tenant="+t.tenant)-tenant, charged("users", "user="+t.user)-user, unheard()-lost)
	})
	return f, err
}

// trio finds a tenant and a user such that the three counters are on three masters.
func (s *stage) trio(l *load) *trio {
	t := new(trio)
	for i := 0; ; i++ {
		t.tenant, t.user = fmt.Sprint("t", i%7), fmt.Sprint("u", i)
		t.path = closedPath + "/" + t.tenant + "/" + t.user
		l.spend(t.path, 1)
		for j, part := range []string{":all:", ":tenants:{tenant=" + t.tenant + "}", ":users:{user=" + t.user + "}"} {
			t.keys[j], t.at[j] = s.keyLike(part)
		}
		if t.at[0] != t.at[1] && t.at[1] != t.at[2] && t.at[2] != t.at[0] {
			return t
		}
	}
}

// checkSubjects: nothing passes beyond the limit, and no more is charged
// without having passed than replies of Redis were lost.
func (f *finding) checkSubjects(c subjected, p *phase, path string, tenant, user, lost int64) {
	f.still = p.inside.still
	t, most := p.paths[path], allowance{subjectRate, subjectRate}
	over := excess(t.passes, most)
	admitted := t.passed.Load()
	leaked, gone := max(tenant, user)-admitted, admitted-min(tenant, user)
	f.cells = []string{
		c.name, fmt.Sprint(t.sent.Load()), fmt.Sprint(admitted), fmt.Sprintf("%.0f", most.in(p.lasted())), fmt.Sprintf("%.1f", over),
		fmt.Sprint(t.denied.Load()), fmt.Sprint(lost), fmt.Sprint(tenant), fmt.Sprint(user), fmt.Sprint(max(leaked, 0)), fmt.Sprint(max(gone, 0)),
	}
	if over > float64(c.lossy) {
		f.miss("%.1f more than 60 + 60/s admitted in some stretch of time", over)
	}
	if leaked > lost {
		f.miss("%d charged that did not pass, and only %d replies were lost", leaked, lost)
	}
	if gone > c.lossy {
		f.miss("%d passed that are not charged", gone)
	}
	if failed := p.failures() + int64(p.inside.Errors); failed > 0 {
		f.miss("%d requests failed", failed)
	}
	if awake := p.inside.awake; awake > deadline+grace {
		f.miss("the slowest answer took %s and the oversleep of its process, want at most %s + %s", ms(awake), ms(deadline), ms(grace))
	}
}
