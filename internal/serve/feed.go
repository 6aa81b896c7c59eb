package serve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/front/dashboard"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/feed"
)

// following is how this instance shares rules with others: it feeds followers, and may follow
// another instance itself.
type following struct {
	watcher atomic.Pointer[source.Watcher] // nil until the first rules are in force

	mu    sync.Mutex
	feeds []*feed.Feed // under mu; of the admin servers that have not ended: two while an upgrade is tried
}

// openFeed returns a feed of the rules in force, for one server; nil if they cannot be followed.
func (s *server) openFeed() *feed.Feed {
	if s.rules == nil || s.rules.Watcher == nil || s.config.Admin.Followers == 0 {
		return nil
	}
	f := feed.New(feed.Options{Waiting: s.config.Admin.Followers, Load: s.rules.Watcher.Joined})
	s.following.mu.Lock()
	defer s.following.mu.Unlock()
	s.following.feeds = append(s.following.feeds, f)
	return f
}

// changed tells followers that the rules may have changed.
func (f *following) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, is := range f.feeds {
		is.Changed()
	}
}

// close releases the followers that wait at a feed, which may be nil: they ask the successor, or
// come back later.
func (f *following) close(is *feed.Feed) {
	if is == nil {
		return
	}
	is.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.feeds = slices.DeleteFunc(f.feeds, func(other *feed.Feed) bool { return other == is })
}

// followersOf returns the instances that get their rules from a feed.
func followersOf(is *feed.Feed) (all []admin.InForce) {
	for _, one := range is.Followers() {
		l := admin.Layer{Name: feedName, Revision: one.Revision, Since: one.Since, Reached: one.Seen.UTC()}
		switch {
		case one.Refused != "":
			l.Refused = &admin.RefusedRules{Revision: one.Refused, Message: one.Error}
		default:
			l.Error = one.Error
		}
		var behind []string
		if one.Behind && one.Refused == "" {
			behind = append(behind, "it does not have what this instance runs now")
		}
		if ago := time.Since(one.Seen); !one.Waiting && ago > silentAfter {
			behind = append(behind, fmt.Sprintf("it has not asked for %s", ago.Truncate(time.Second)))
		}
		all = append(all, admin.InForce{
			ID: one.Address, Name: one.Node, Version: one.Version, Follows: true, Behind: behind,
			Hash: one.Hash, Since: one.Since, Rules: one.Rules, Instances: one.Instances, Layers: []admin.Layer{l},
		})
	}
	return all
}

// silentAfter is longer than the pause between two requests of a running follower.
const silentAfter = 30 * time.Second

// feedName is how followers name this instance as a source.
const feedName = "/rules/bundle"

// report returns what a source is told about this instance.
func (s *server) report(name string) feed.Report {
	r := feed.Report{Node: s.nodeName(), Version: s.version}
	w := s.following.watcher.Load()
	if w == nil {
		return r
	}
	st, set := w.Status(), w.Live().Set()
	r.Hash, r.Rules, r.Instances = st.Hash, len(set.Rules()), set.Instances()
	for _, l := range st.Layers {
		if l.Name != name {
			continue
		}
		r.Revision, r.Since, r.Error = l.Revision, l.Since.UTC(), l.Error
		if l.Refused != nil {
			r.Refused, r.Error = l.Refused.Revision, l.Refused.Message
		}
	}
	return r
}

// feeding is the server of the admin listener, with the feed and the dashboard that only it serves.
// Its end also releases followers and dashboard pages.
type feeding struct {
	tlsServer
	following *following
	feed      *feed.Feed // nil if the rules cannot be followed
	page      *dashboard.Dashboard
}

// Shutdown implements [handover.Server].
func (f feeding) Shutdown(ctx context.Context) error {
	f.release()
	return f.tlsServer.Shutdown(ctx)
}

// Close implements [handover.Server].
func (f feeding) Close() error {
	f.release()
	return f.tlsServer.Close()
}

func (f feeding) release() {
	f.following.close(f.feed)
	f.page.Close()
}
