package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/front/admin"
)

// fleetTimeout is how long the store may take to list the instances.
const fleetTimeout = 5 * time.Second

// ListFleet lists the instances that share the counters of store, with warnings. It fails if no
// server of the store answers, unless store has joined the fleet itself: then it lists at least
// that instance.
func ListFleet(ctx context.Context, store *fleet.Store) (admin.Fleet, error) {
	ctx, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	members, err := store.Members(ctx)
	is := admin.Fleet{Instances: make([]admin.Instance, 0, len(members))}
	if err != nil && len(members) == 0 {
		return is, err
	}
	for i := range members {
		is.Instances = append(is.Instances, instanceOf(&members[i]))
	}
	for _, m := range store.Health().Servers {
		is.Servers = append(is.Servers, admin.StoreServer{Name: m.Name, Status: m.Status, Since: m.Since, Backlog: m.Backlog})
	}
	is.Warnings = append(fleetWarnings(members), unsharedWarnings(store)...)
	regions, _ := store.Regions(ctx) // what fails here has failed above
	for _, r := range regions {
		is.Regions = append(is.Regions, admin.Region{Name: r.Name, Lag: r.Lag.Seconds(), Heard: r.Heard, CutOff: r.CutOff})
		if r.CutOff {
			is.Warnings = append(is.Warnings, fmt.Sprintf("nothing was heard from region %s for %s: on_partition of each rule decides; is there a tidegate serve or region-sync that reaches this Redis?", r.Name, r.Lag.Round(time.Second)))
		}
	}
	if err != nil {
		is.Incomplete = err.Error()
		is.Warnings = append(is.Warnings, "not every server of the store could be asked, instances may be missing: "+is.Incomplete)
	}
	return is, nil
}

func instanceOf(m *fleet.Member) admin.Instance {
	is := admin.Instance{
		ID: m.ID, Self: m.Self, Known: m.Known, Name: m.Name, Version: m.Version, Rules: m.Rules, Started: m.Started, Seen: m.Seen,
		Backlog: m.Backlog, Leases: m.Leases, LeasedEvents: m.LeasedEvents, Lag: m.Lag.Seconds(), Counts: m.Instances,
	}
	if m.Instances > 0 {
		is.Share = 1 / float64(m.Instances)
	}
	if m.Known {
		is.Circuit = &admin.Circuit{Status: m.Status, Since: m.Since, Servers: m.Out, Count: m.OutCount}
	}
	if m.Follows {
		is.Measures = &m.Orders
	}
	if c := m.Clock; c.Known() {
		is.Clock = &admin.Clock{Offset: c.Offset.Seconds(), Within: c.Within.Seconds(), Server: c.Server, Off: c.Off()}
	}
	return is
}

// fleetWarnings returns what an operator should look at.
func fleetWarnings(members []fleet.Member) (all []string) {
	all = clockWarnings(members)
	revisions := make(map[string][]string)
	var unknown []string
	for i := range members {
		m := &members[i]
		switch {
		case !m.Known:
			unknown = append(unknown, m.ID)
			continue
		case m.Status == fleet.Partial:
			all = append(all, fmt.Sprintf("%s has been partial since %s: Redis does not answer it everywhere (%s); on_store_failure decides there", shownName(m), clockTime(m.Since), serversOf(m)))
		case m.Status != fleet.OK:
			all = append(all, fmt.Sprintf("%s has been %s since %s: it does not decide by Redis alone, and on_store_failure of each rule decides the rest", shownName(m), m.Status, clockTime(m.Since)))
		}
		if m.Rules != "" {
			revisions[m.Rules] = append(revisions[m.Rules], shownName(m))
		}
	}
	if len(revisions) > 1 {
		var parts []string
		for _, revision := range slices.Sorted(maps.Keys(revisions)) {
			parts = append(parts, revision+" ("+someOf(revisions[revision])+")")
		}
		all = append(all, "the rules differ: "+someOf(parts)+"; either a rollout is under way, or an instance has not loaded its file, which its /rules says")
	}
	all = append(all, measureWarnings(members)...)
	switch len(unknown) {
	case 0:
	case 1:
		all = append(all, "an instance tells nothing about itself, being of an older version: "+unknown[0])
	default:
		all = append(all, fmt.Sprintf("%d instances tell nothing about themselves, as they are of an older version: %s", len(unknown), someOf(unknown)))
	}
	return all
}

// behindAfter is how long an instance may take to report, in a heartbeat, that it has a measure.
const behindAfter = 10 * time.Second

// measureWarnings returns warnings about instances on which bans and overrides are not in force.
func measureWarnings(members []fleet.Member) (all []string) {
	last := int64(0)
	for i := range members {
		last = max(last, members[i].Orders)
	}
	if last == 0 || time.Since(time.UnixMicro(last)) < behindAfter {
		return nil
	}
	var behind, apart []string
	for i := range members {
		switch m := &members[i]; {
		case !m.Known:
		case !m.Follows:
			apart = append(apart, shownName(m))
		case m.Orders < last:
			behind = append(behind, shownName(m))
		}
	}
	if len(behind) > 0 {
		all = append(all, "bans and overrides may not hold everywhere, as not all have the last of them: "+someOf(behind))
	}
	if len(apart) > 0 {
		all = append(all, "bans and overrides do not hold where they are not followed, in older versions and some programs: "+someOf(apart))
	}
	return all
}

// unsharedWarnings returns warnings about bans and overrides of this instance that the others
// cannot get.
func unsharedWarnings(store *fleet.Store) []string {
	b, ok := board.Of(store)
	if !ok {
		return nil
	}
	is := b.Status()
	if is.Why == nil || time.Since(is.Since) < behindAfter {
		return nil
	}
	return []string{fmt.Sprintf("bans and overrides have not been shared since %s, %d of this instance are still to be shared: %v", clockTime(is.Since), is.Pending, is.Why)}
}

// clockWarnings returns warnings about clocks that differ from that of Redis. If all differ by the
// same amount, the clock of Redis is wrong.
func clockWarnings(members []fleet.Member) (all []string) {
	var off []*fleet.Member
	compared := 0
	least, most := time.Duration(0), time.Duration(0)
	for i := range members {
		c := members[i].Clock
		if !c.Known() {
			continue
		}
		if compared++; compared == 1 {
			least, most = c.Offset, c.Offset
		}
		least, most = min(least, c.Offset), max(most, c.Offset)
		if c.Off() {
			off = append(off, &members[i])
		}
	}
	if len(off) > 1 && len(off) == compared && most-least <= fleet.MaxClockOffset {
		return []string{fmt.Sprintf("the clocks of all instances agree with each other and are %s: synchronize the clock of Redis (NTP)", off[0].Clock)}
	}
	for _, m := range off {
		all = append(all, fmt.Sprintf("the clock of %s is %s: windows and quotas that it counts while Redis is away begin at other times than elsewhere; synchronize its clock (NTP)", shownName(m), m.Clock))
	}
	return all
}

func shownName(m *fleet.Member) string {
	if m.Name == "" {
		return m.ID
	}
	return m.Name
}

// serversOf returns the names of the servers that do not answer m; if it named none, where to look.
func serversOf(m *fleet.Member) string {
	if m.OutCount == 0 {
		return "some rules cannot be asked about; its /healthz says which"
	}
	text := strings.Join(m.Out, ", ")
	if more := m.OutCount - len(m.Out); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// maxNamed is how many names a warning lists.
const maxNamed = 5

// someOf joins at most maxNamed names, and says how many more there are.
func someOf(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
