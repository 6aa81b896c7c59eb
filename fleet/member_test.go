package fleet_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// waitMembers waits until the members are as ok wants them.
func waitMembers(t *testing.T, s *fleet.Store, what string, ok func([]fleet.Member) bool) (all []fleet.Member) {
	t.Helper()
	var err error
	if !testdep.Await(time.Minute, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		all, err = s.Members(ctx)
		return err == nil && ok(all)
	}) {
		t.Fatalf("waited for a minute until %s; there are %+v, %v", what, all, err)
	}
	return all
}

// compared: so many members are there, all is well, their clocks were compared, and each
// counts all.
func compared(n int) func([]fleet.Member) bool {
	return func(all []fleet.Member) bool {
		for _, m := range all {
			if !m.Clock.Known() || m.Instances != n || m.Status != fleet.OK {
				return false
			}
		}
		return len(all) == n
	}
}

// Every instance shows every instance: name, version, rules, share, and its clock against
// that of Redis, whether that is one server, one behind Sentinels, or a cluster.
func TestMembers(t *testing.T) {
	t.Parallel()
	_, sentinels := testdep.RedisSentinel(t, 1)
	for name, url := range map[string]string{
		"single":   "redis://" + testdep.Redis(t).Addr,
		"sentinel": "redis-sentinel://" + sentinels[0].Addr + "/mymaster",
		"cluster":  clusterURL(testdep.RedisCluster(t, 3, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			skews := []time.Duration{0, 50 * time.Millisecond, 3 * time.Second, -time.Hour}
			var stores []*fleet.Store
			for i, skew := range skews {
				stores = append(stores, open(t, url, fleet.Options{
					Deadline: patient, Name: fmt.Sprint("web-", i), Version: "v9", Rules: func() string { return fmt.Sprintf("%064d", i%2) },
				}.Skewed(skew)))
			}
			reader := open(t, url, fleet.Options{Deadline: patient, JoinLater: true})
			for self, s := range append(stores, reader) {
				for i, m := range waitMembers(t, s, "all are there", compared(len(skews))) {
					if !m.Known || m.Name != fmt.Sprint("web-", i) || m.Version != "v9" || m.Rules != strings.Repeat("0", 16) || m.Backlog != 0 {
						t.Errorf("%+v", m)
					}
					if m.Self != (i == self) || m.ID == "" || m.Started.Before(start.Add(-time.Minute)) || m.Seen.Before(m.Started.Add(-time.Minute)) {
						t.Errorf("%+v is not %d of %d", m, i, self)
					}
					if c := m.Clock; (c.Offset-skews[i]).Abs() > c.Within+time.Millisecond || c.Off() && skews[i].Abs() < fleet.MaxClockOffset ||
						c.Server != "" && name != "cluster" {
						t.Errorf("%s is %+v, want %s", m.Name, c, skews[i])
					}
				}
			}

			// Whoever leaves is gone at once, and not only when its heartbeats are missed.
			for i := len(stores) - 1; i >= 0; i-- {
				_ = stores[i].Close()
				left := func(m fleet.Member) bool { return m.Name >= fmt.Sprint("web-", i) }
				var all []fleet.Member
				var err error
				if !testdep.Await(6*time.Second, func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					all, err = reader.Members(ctx)
					return err == nil && !slices.ContainsFunc(all, left)
				}) {
					t.Errorf("%d have left, and there are %+v, %v", len(stores)-i, all, err)
				}
			}
		})
	}
}

func clusterURL(servers []*testdep.RedisServer) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.Addr)
	}
	return "redis-cluster://" + strings.Join(hosts, ",")
}

// An instance without a name has that of its machine and process.
func TestMemberByDefault(t *testing.T) {
	t.Parallel()
	s := open(t, "redis://"+testdep.Redis(t).Addr, fleet.Options{Deadline: patient})
	m := waitMembers(t, s, "it is there", compared(1))[0]
	host, _ := os.Hostname()
	if want := fmt.Sprintf("%.50s:%d", host, os.Getpid()); m.Name != want || m.Rules != "" || !m.Self {
		t.Errorf("%+v, want %s", m, want)
	}
}

// Instances of an older version, which tell nothing, are counted and listed; nothing that is
// written into Redis gets to a terminal as it is.
func TestMembersThatAreNotOurs(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, Name: "\x1b]0;mine\a\u202e"})
	waitMembers(t, s, "it is there", compared(1))
	live := fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())
	server.Do("ZADD", "tg:nodes", live, "OLD", live, "EVIL\x1b[2J")
	server.Do("SET", "tg:nodes{tg:nodes}:EVIL\x1b[2J", `1 {"name":"\u001b[31mred\r\nab","version":"\u009b2J","rules":"`+strings.Repeat("r", 300)+`","status":"\u001b[2J","of":3,"clock":9e99,"within":1e-9}`)
	all := waitMembers(t, s, "all are there", func(all []fleet.Member) bool { return len(all) == 3 && s.Instances() == 3 })
	for _, m := range all {
		if strings.ContainsFunc(fmt.Sprint(m), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e' }) {
			t.Errorf("%q is for no terminal", fmt.Sprint(m))
		}
	}
	if m := all[0]; m.ID != "OLD" || m.Known || m.Clock.Known() {
		t.Errorf("the old version is %+v", m)
	}
	if m := all[1]; m.Name != "?[31mred??ab" || m.Version != "?2J" || m.Status != "unknown" || len(m.Rules) != 16 || m.Clock.Offset < time.Hour {
		t.Errorf("the stranger is %+v", m)
	}
	if m := all[2]; m.Name != "?]0;mine??" || !m.Self {
		t.Errorf("this one is %+v", m)
	}
}

// An instance whose clock is off says so: once, in its health, and to all others.
func TestClockIsOff(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	var mu sync.Mutex
	var told []fleet.Clock
	s := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, OnClock: func(c fleet.Clock) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, c)
	}}.Skewed(5*time.Minute))
	m := waitMembers(t, s, "the clocks are compared", compared(1))[0]
	h := s.Health()
	if !m.Clock.Off() || !h.Clock.Off() || len(h.Warnings) != 1 || !strings.HasPrefix(h.Warnings[0], "the clock of this machine is 5m0s ahead of Redis: ") {
		t.Errorf("%+v, %+v", m, h)
	}
	beats := m.Seen
	waitMembers(t, s, "it has told again", func(all []fleet.Member) bool { return len(all) == 1 && all[0].Seen.Sub(beats) > time.Second })
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || !told[0].Off() {
		t.Errorf("told %v", told)
	}
}

// While Redis is away, an instance still tells about itself, and a mere reader gets an error.
func TestMembersDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	s, reader := open(t, url, fleet.Options{Name: "web"}), open(t, url, fleet.Options{JoinLater: true})
	waitMembers(t, s, "it is there", compared(1))
	server.Kill()
	testdep.Eventually(t, "degraded", func() bool { return s.Health().Status == fleet.Degraded })
	all, err := s.Members(t.Context())
	if err == nil || len(all) != 1 || !all[0].Self || all[0].Name != "web" || all[0].Status != fleet.Degraded {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := reader.Members(t.Context()); err == nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	closed := open(t, url, fleet.Options{})
	_ = closed.Close()
	if all, err := closed.Members(t.Context()); err == nil || len(all) != 0 {
		t.Errorf("%+v, %v of one that has left", all, err)
	}
	server.Start()
	m := waitMembers(t, reader, "it is there again", func(all []fleet.Member) bool { return len(all) == 1 && all[0].Status == fleet.OK })[0]
	if m.Name != "web" || m.Self {
		t.Errorf("%+v", m)
	}
}

// While a master of a cluster does not answer, the others list the instances, which say that
// their circuits are not ok, and for which master.
func TestMembersShowCircuits(t *testing.T) {
	t.Parallel()
	servers := testdep.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	url := clusterURL(servers)
	s := open(t, url, fleet.Options{Deadline: patient, Name: "web"})
	reader := open(t, url, fleet.Options{Deadline: patient, JoinLater: true})
	waitMembers(t, reader, "it is there", compared(1))
	dead := servers[1]
	dead.Pause()
	defer dead.Resume()
	for _, asked := range []*fleet.Store{s, reader} {
		var all []fleet.Member
		var err error
		if !testdep.Await(time.Minute, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			all, err = asked.Members(ctx)
			return len(all) == 1 && all[0].Status == fleet.Partial && all[0].OutCount == 1 && slices.Equal(all[0].Out, []string{dead.Addr}) &&
				err != nil && strings.Contains(err.Error(), dead.Addr)
		}) {
			t.Fatalf("%+v, %v; want it to be partial for want of %s", all, err, dead.Addr)
		}
	}
}

// What an instance has leased is told.
func TestMembersShowLeases(t *testing.T) {
	t.Parallel()
	s := open(t, "redis://"+testdep.Redis(t).Addr, fleet.Options{Deadline: patient})
	limit := tidegate.MustLimit(tidegate.Spec{Name: "hot", Events: 1_000_000, Period: time.Second, Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}}})
	lim := tidegate.New(s, limit)
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	asking.Go(func() {
		for ctx.Err() == nil {
			lim.Allow(ctx, "everyone")
			time.Sleep(100 * time.Microsecond)
		}
	})
	waitMembers(t, s, "it holds a lease", func(all []fleet.Member) bool { return len(all) == 1 && all[0].Leases >= 1 && all[0].LeasedEvents > 0 })
}
