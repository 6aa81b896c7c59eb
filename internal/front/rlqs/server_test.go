package rlqs

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/memory"
)

// A bucket gets an assignment at once, and again before it expires. One whose demand is not known
// starts with half of what there is.
func TestKinds(t *testing.T) {
	f := func(bucket, first, later, advice string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := start(t, Options{Times: short, Log: slog.New(slog.NewTextHandler(&log, nil))})
			st := openStream(t, s)
			for range 3 {
				report(t, s, st, bucket, 0, 1)
				if got := s.told(t, st); got != first {
					t.Errorf("%s: got %q, want %q", bucket, got, first)
				}
				if got := s.read(t, st, 6*s.o.Times.Renewal()); len(got) != 6 || !strings.HasSuffix(got[5], later) {
					t.Errorf("%s: got %q later, want %q", bucket, got, later)
				}
				s.unsubscribe(s.subscribed(st, mustName(t, bucket)))
				time.Sleep(2 * time.Minute) // the bucket is full again
			}
			s.Close()
			if said := log.String(); strings.Count(said, advice) != 1 && advice != "" || advice == "" && said != "" {
				t.Errorf("%s: the log says %q", bucket, said)
			}
		})
	}
	f("bucket=x", "250, 500 in 1s", ", 750 in 1s", "")
	f("low=x", "2, 32 in 384s", "in 384s", "")
	f("tenant=a, path=/", "25, 50 in 1s", ", 75 in 1s", "")
	f("path=/, tenant=a", "25, 50 in 1s", ", 75 in 1s", "")
	f("window=x", "DENY_ALL", "DENY_ALL", "its algorithm is fixed_window: the quota service divides a token_bucket")
	f("several=x", "DENY_ALL", "DENY_ALL", "it has several limits")
	f("split=x", "DENY_ALL", "DENY_ALL", "its consistency is split")
	f("none=x", "DENY_ALL", "DENY_ALL", "")
	f("free=x", "ALLOW_ALL", "ALLOW_ALL", "")
	f("tried=x", "ALLOW_ALL", "ALLOW_ALL", "")
	f("unknown=x", "ALLOW_ALL", "ALLOW_ALL", "")
	f("bucket=x, more=y", "ALLOW_ALL", "ALLOW_ALL", "")
}

// Counters of a fleet have to hold what is paid ahead.
func TestBurstForAFleet(t *testing.T) {
	s := start(t, Options{Store: memory.New()}) // 2.5s ahead
	st := openStream(t, s)
	report(t, s, st, "bucket=x", 0, 1)
	if got := s.told(t, st); got != "DENY_ALL" {
		t.Errorf("told %q", got)
	}
	is := s.find(t.Context(), "shop", []envoy.Entry{{Key: "bucket", Value: "x"}})
	if is.assigned != unfit || !strings.Contains(is.why.Error(), "its burst is 1000 and must be at least 5004") {
		t.Errorf("%+v", is)
	}
}

// Domains that no file has are for the native rules.
func TestNative(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(`
version: 1
identify: { user: descriptor }
rules:
  - { name: posts, match: POST /posts, per: user, limits: { rate: 100/second, algorithm: token_bucket, burst: 50 } }
  - { name: logins, match: POST /login, per: ip, limits: 10/minute }
  - { name: private, match: /private, deny: true }
`), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	s := start(t, Options{Desk: desk.New(tidegate.NewGate(rules.NewLive(set), store)), Domains: func() *envoy.Set { return nil }})
	f := func(bucket, want string) {
		t.Helper()
		st := openStream(t, s)
		defer s.end(st)
		report(t, s, st, bucket, 0, 1)
		if got := s.told(t, st); got != want {
			t.Errorf("%s: told %q, want %q", bucket, got, want)
		}
	}
	f("method=POST, path=/posts, user=ann", "12, 50 in 1s")
	f("method=POST, path=/posts, user=bob", "12, 50 in 1s")
	f("method=POST, path=/login, remote_address=192.0.2.1", "DENY_ALL")
	f("path=/private", "DENY_ALL")
	f("path=/elsewhere", "ALLOW_ALL")
	f("path=//x/../y", "DENY_ALL")
}

// Rules that change hold from then on.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[envoy.Set]
		now.Store(load(t, kinds))
		s := start(t, Options{Times: short, Domains: now.Load})
		st := openStream(t, s)
		f := func(config, want string) {
			t.Helper()
			now.Store(load(t, config))
			var last []string
			for range 20 {
				report(t, s, st, "bucket=x", 1000, 0)
				last = s.read(t, st, s.o.Times.Renewal())
			}
			if len(last) != 1 || !strings.HasSuffix(last[0], want) {
				t.Errorf("sent %q, want %q", last, want)
			}
		}
		f(kinds, "979 in 1s")
		f(strings.Replace(kinds, "requests_per_unit: 1000, tidegate: { algorithm: token_bucket, burst: 1000 }", "requests_per_unit: 10, tidegate: { algorithm: token_bucket, burst: 10 }", 1), "68 in 7s")
		f(strings.Replace(kinds, "algorithm: token_bucket, burst: 1000", "algorithm: sliding_log", 1), "DENY_ALL")
		f(strings.Replace(kinds, "key: bucket", "key: other", 1), "ALLOW_ALL")
	})
}

// slowStore takes its time, if it is told to.
type slowStore struct {
	tidegate.Store
	slow atomic.Bool
}

func (s *slowStore) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if s.slow.Load() {
		time.Sleep(50 * time.Millisecond)
	}
	return s.Store.Take(ctx, checks, n)
}

// Native rules are asked about many buckets, by way of a store that answers slowly: nobody's assignment
// expires meanwhile, neither from time to time nor when rules change.
func TestSlowLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		native, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: descriptor }\nrules:\n  - { name: r, match: /, per: user, limits: { rate: 100/second, algorithm: token_bucket, burst: 50 } }\n"), rules.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var files atomic.Pointer[envoy.Set]
		files.Store(load(t, kinds))
		store := &slowStore{Store: memory.New()}
		s := start(t, Options{Times: short, Domains: files.Load, Desk: desk.New(tidegate.NewGate(rules.NewLive(native), store))})
		st, others := openStream(t, s), openStream(t, s)
		report(t, s, st, "bucket=x", 0, 1)
		var usages []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage
		for i := range 500 {
			usages = append(usages, &pb.RateLimitQuotaUsageReports_BucketQuotaUsage{BucketId: &pb.BucketId{Bucket: id(fmt.Sprintf("path=/x, user=%d", i))}})
		}
		if err := s.reported(t.Context(), others, &pb.RateLimitQuotaUsageReports{Domain: "other", BucketQuotaUsages: usages}); err != nil {
			t.Fatal(err)
		}
		s.read(t, st, 2*time.Second) // it has all that there is
		store.slow.Store(true)
		before := s.Stats()
		f := func(when string, lasts time.Duration) {
			t.Helper()
			report(t, s, st, "bucket=x", 0, 0)
			renewals := int(lasts / s.o.Times.Renewal())
			if got := s.read(t, st, lasts); len(got) < renewals-1 {
				t.Errorf("%s: %d assignments in %d renewals", when, len(got), renewals)
			}
		}
		f("from time to time", 2*refresh)
		files.Store(load(t, kinds))
		f("after a change", refresh)
		if got := s.Stats(); got.Late > before.Late {
			t.Errorf("%+v", got)
		}
		s.Close()
	})
}

// Buckets that nobody uses are abandoned, and those of a proxy that says nothing.
func TestAbandon(t *testing.T) {
	for _, bucket := range []string{"bucket=x", "free=x"} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Options{})
			st := openStream(t, s)
			for range int(idle / time.Second) {
				report(t, s, st, bucket, 0, 0)
				time.Sleep(time.Second)
				if got := s.told(t, st); strings.Contains(got, "abandon") {
					t.Fatalf("%s: abandoned early", bucket)
				}
			}
			report(t, s, st, bucket, 0, 0)
			time.Sleep(3 * time.Second)
			if got := s.told(t, st); !strings.HasSuffix(got, "abandon") || s.Stats().Buckets != 0 {
				t.Errorf("%s: told %q, %+v", bucket, got, s.Stats())
			}
			report(t, s, st, bucket, 0, 1)
			if got := s.told(t, st); got == "" || s.Stats().Buckets != 1 {
				t.Errorf("%s: told %q of a bucket that is back", bucket, got)
			}
			time.Sleep(silent + 3*time.Second)
			if got := s.told(t, st); !strings.HasSuffix(got, "abandon") {
				t.Errorf("%s: told %q, without reports", bucket, got)
			}
			s.end(st)
			time.Sleep(time.Minute)
			if got := s.Stats(); got.Buckets+got.Counters+got.Streams != 0 {
				t.Errorf("%s: %+v are kept", bucket, got)
			}
			s.Close()
		})
	}
}

// Rules that change while a bucket is looked up hold for it as well.
func TestRulesChangeDuringALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[envoy.Set]
		now.Store(load(t, kinds))
		s := start(t, Options{Times: short, Domains: now.Load})
		st := openStream(t, s)
		st.domain = "shop"
		before := s.find(t.Context(), "shop", []envoy.Entry{{Key: "bucket", Value: "x"}})
		now.Store(load(t, strings.Replace(kinds, "key: bucket", "key: other", 1)))
		time.Sleep(s.o.Times.Renewal()) // others follow
		s.subscribe(st, mustName(t, "bucket=x"), &pb.BucketId{Bucket: id("bucket=x")}, before)
		if got := s.read(t, st, 4*s.o.Times.Renewal()); len(got) == 0 || got[len(got)-1] != "ALLOW_ALL" {
			t.Errorf("sent %q, where no rule limits it any more", got)
		}
		s.Close()
	})
}

// A proxy that asks for a bucket again while that is abandoned is not told to forget it: the next extension
// would be a full bucket for it.
func TestAbandonedAndAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Times: short})
		st := openStream(t, s)
		report(t, s, st, "bucket=x", 0, 1)
		sub := s.subscribed(st, mustName(t, "bucket=x"))
		s.unsubscribe(sub)
		report(t, s, st, "bucket=x", 0, 1)
		s.sayAbandoned(sub, s.now())
		if got := s.told(t, st); !strings.HasSuffix(got, " in 1s") {
			t.Errorf("told %q", got)
		}
		s.unsubscribe(s.subscribed(st, mustName(t, "bucket=x")))
		s.sayAbandoned(sub, s.now())
		if got := s.told(t, st); got != "abandon" {
			t.Errorf("told %q of a bucket that nobody wants", got)
		}
		s.Close()
	})
}

// A report that is handled while its bucket is abandoned leaves nothing behind.
func TestReportOfWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Times: short})
		st := openStream(t, s)
		report(t, s, st, "bucket=x", 0, 1)
		sub := s.subscribed(st, mustName(t, "bucket=x"))
		a := sub.account
		s.unsubscribe(sub)
		a.report(sub, 5, s.now())
		time.Sleep(time.Minute)
		if got := s.Stats(); got.Buckets+got.Counters != 0 {
			t.Errorf("%+v are kept", got)
		}
		s.Close()
	})
}

// A successor denies until the assignments of its predecessor have expired.
func TestSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Times: short, Successor: true})
		st := openStream(t, s)
		for time.Since(s.began) < short.Out() {
			report(t, s, st, "bucket=x", 0, 100)
			if got := s.told(t, st); strings.ReplaceAll(strings.ReplaceAll(got, "DENY_ALL", ""), "\n", "") != "" {
				t.Fatalf("told %q after %v", got, time.Since(s.began))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := s.read(t, st, short.TTL); len(got) == 0 || !strings.Contains(got[len(got)-1], " in 1s") {
			t.Errorf("sent %q", got)
		}
		s.Close()
	})
}

// What a proxy does not read in time is not sent to it later. What it gets next is a full bucket,
// and paid for as one: it may have nothing by then.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Times: short})
		st := openStream(t, s)
		read := func(after time.Duration) string {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			return s.told(t, st)
		}
		tick := s.o.Times.Renewal() / 4
		report(t, s, st, "bucket=x", 0, 1)
		if got := read(short.Delivery/2 + time.Millisecond); got != "" {
			t.Errorf("sent %q too late", got)
		}
		if got := read(tick); !strings.HasSuffix(got, " in 1s") {
			t.Errorf("sent %q", got)
		}
		if got := s.Stats(); got.Late != 1 || got.Changed != 2 {
			t.Errorf("%+v", got)
		}
		for range 100 { // it has what it gets, and keeps it
			read(tick)
		}
		for read(tick) == "" {
		}
		before := s.Stats()
		if got := read(2*s.o.Times.Renewal() + tick); got != "" {
			t.Errorf("sent %q, after an extension that was not read", got)
		}
		if got := s.Stats(); got.Late != before.Late+1 || got.Extended != before.Extended+2 || got.Changed != before.Changed {
			t.Errorf("%+v, after %+v", got, before)
		}
		if got := read(tick); !strings.HasSuffix(got, " in 1s") || s.Stats().Changed != before.Changed+1 {
			t.Errorf("sent %q, %+v", got, s.Stats())
		}
		s.Close()
	})
}

// Nobody can make the server hold more than its bounds. What is above them is denied.
func TestBounds(t *testing.T) {
	s := start(t, Options{})
	st := openStream(t, s)
	for i := range MaxBuckets + 100 {
		report(t, s, st, fmt.Sprintf("bucket=%d", i), 0, 1)
	}
	long := map[string]string{"bucket": strings.Repeat("x", MaxID)}
	many := make(map[string]string)
	for i := range MaxEntries + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	for _, bucket := range []map[string]string{long, many} {
		if err := s.reported(t.Context(), st, &pb.RateLimitQuotaUsageReports{BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{{BucketId: &pb.BucketId{Bucket: bucket}}}}); err != nil {
			t.Errorf("clients of a proxy end its stream: %v", err)
		}
	}
	if got := s.Stats(); got.Buckets != MaxBuckets || got.Counters != MaxBuckets || got.Refused != 102 {
		t.Errorf("%+v", got)
	}
	st.outbox.mu.Lock()
	n := len(st.outbox.updates)
	st.outbox.mu.Unlock()
	if n > 2*MaxBuckets {
		t.Errorf("%d updates wait", n)
	}
	for i := 1; i < MaxStreams; i++ {
		openStream(t, s)
	}
	if s.open(&stream{}) {
		t.Error("there is no bound of streams")
	}
}

// Every bucket whose id is too long is denied, not only the last of a message, and what waits for a
// proxy that does not read is bounded.
func TestIDsThatAreTooLong(t *testing.T) {
	s := start(t, Options{})
	st := openStream(t, s)
	of := func(n, size int) (want map[string]bool) {
		want = make(map[string]bool)
		in := &pb.RateLimitQuotaUsageReports{Domain: "shop"}
		for i := range n {
			id := &pb.BucketId{Bucket: map[string]string{"bucket": fmt.Sprint(i, strings.Repeat("x", size))}}
			want[id.Bucket["bucket"]] = true
			in.BucketQuotaUsages = append(in.BucketQuotaUsages, &pb.RateLimitQuotaUsageReports_BucketQuotaUsage{BucketId: id})
		}
		if err := s.reported(t.Context(), st, in); err != nil {
			t.Fatal(err)
		}
		return want
	}
	denied := func(want map[string]bool) {
		t.Helper()
		for {
			m, _ := st.outbox.take(s.now(), s.o.Times)
			if m == nil {
				break
			}
			for _, a := range m.BucketAction {
				if wordOf(t, a, s.o.Times.TTL) == "DENY_ALL" {
					delete(want, a.BucketId.Bucket["bucket"])
				}
			}
		}
		if len(want) > 0 {
			t.Errorf("%d buckets are not denied", len(want))
		}
	}
	denied(of(1, MaxID))
	denied(of(2, MaxID))
	denied(of(100, MaxID))
	denied(of(1, 250<<10))
	for range 20 {
		of(100, MaxID) // nobody reads
	}
	if st.outbox.bytes > maxRefused || len(st.outbox.refused) > maxRefused/MaxID {
		t.Errorf("%d updates of %d bytes wait", len(st.outbox.refused), st.outbox.bytes)
	}
	denied(nil)
	if st.outbox.bytes != 0 || s.waiting.refused.Load() != 0 {
		t.Errorf("%d bytes wait, and %d of all", st.outbox.bytes, s.waiting.refused.Load())
	}
	denied(of(3, MaxID))
}

// What waits for proxies that do not read is bounded for all of them together, and is gone with them.
func TestWhatNobodyReads(t *testing.T) {
	s := start(t, Options{})
	var all []*stream
	for i := range 300 {
		st := openStream(t, s)
		all = append(all, st)
		in := &pb.RateLimitQuotaUsageReports{Domain: "shop"}
		for j := range 100 { // too long, so that they are refused
			in.BucketQuotaUsages = append(in.BucketQuotaUsages, &pb.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId: &pb.BucketId{Bucket: map[string]string{"bucket": fmt.Sprint(i, j, strings.Repeat("x", MaxID))}},
			})
		}
		if err := s.reported(t.Context(), st, in); err != nil {
			t.Fatal(err)
		}
		for j := range 600 { // as of buckets that are abandoned
			st.outbox.put(fmt.Sprint(j), update{action: abandon(&pb.BucketId{Bucket: map[string]string{"bucket": fmt.Sprint(j)}})})
		}
	}
	updates, bytes := 0, 0
	for _, st := range all {
		updates, bytes = updates+len(st.outbox.updates), bytes+st.outbox.bytes
	}
	if updates > maxWaiting || bytes > maxAllRefused || int64(updates) != s.waiting.updates.Load() || int64(bytes) != s.waiting.refused.Load() {
		t.Errorf("%d updates and %d bytes wait, counted as %d and %d", updates, bytes, s.waiting.updates.Load(), s.waiting.refused.Load())
	}
	for i, st := range all {
		if i%20 == 0 {
			s.told(t, st)
		}
		s.end(st)
		st.outbox.put("late", update{})
		st.outbox.refuse(abandon(new(pb.BucketId)))
	}
	if s.waiting.updates.Load() != 0 || s.waiting.refused.Load() != 0 {
		t.Errorf("%d updates and %d bytes wait for nobody", s.waiting.updates.Load(), s.waiting.refused.Load())
	}
}

// A message that makes no sense is an error, and changes nothing.
func TestMistakes(t *testing.T) {
	s := start(t, Options{})
	st := openStream(t, s)
	f := func(in *pb.RateLimitQuotaUsageReports, want string) {
		t.Helper()
		err := s.reported(t.Context(), st, in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", in, err, want)
		}
		if got := s.Stats(); got.Buckets != 0 {
			t.Errorf("%v: %+v", in, got)
		}
	}
	of := func(id *pb.BucketId) []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage {
		good := &pb.BucketId{Bucket: map[string]string{"bucket": "x"}}
		return []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{{BucketId: good}, {BucketId: id}}
	}
	f(&pb.RateLimitQuotaUsageReports{}, "the domain is empty")
	f(&pb.RateLimitQuotaUsageReports{Domain: strings.Repeat("x", MaxDomain+1)}, "of at most 1024")
	f(&pb.RateLimitQuotaUsageReports{Domain: "shop", BucketQuotaUsages: of(nil)}, "report 1 has no bucket id")
	f(&pb.RateLimitQuotaUsageReports{Domain: "shop", BucketQuotaUsages: of(&pb.BucketId{})}, "report 1 has no bucket id")
	f(&pb.RateLimitQuotaUsageReports{Domain: "shop", BucketQuotaUsages: of(&pb.BucketId{Bucket: map[string]string{"": "x"}})}, "without a key")
	st.domain = "shop"
	f(&pb.RateLimitQuotaUsageReports{Domain: "other"}, "open a stream for each")
}
