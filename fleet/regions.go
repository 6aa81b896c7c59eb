package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/region"
	"tidegate.dev/tidegate/internal/lang/redisurl"
	"tidegate.dev/tidegate/store/redis"
)

// Region is another region of the fleet, with a Redis of its own.
type Region struct {
	Name string
	// URL of its Redis, a single server or Sentinels. "" means that this instance does not send its
	// counts there: another process of this region does, such as `tidegate region-sync`.
	URL string
}

// RegionHealth is how far behind the counts of another region are here.
type RegionHealth struct {
	Name string
	// Lag is the age of the oldest count of that region that may be missing here.
	Lag time.Duration
	// Heard: Redis knows when it last heard of the region. Otherwise Lag counts from Open.
	Heard bool
	// CutOff: Redis has not heard of it for five seconds, so OnPartition of each limit decides.
	CutOff bool
}

// RegionTrouble reports a region to which counts, or some of them, cannot be sent.
type RegionTrouble struct {
	Region string
	Why    error // nil means that they can again, unless TooLarge is set
	// TooLarge is how many counters have too many windows and instances to be sent: for those,
	// each region has the whole limit. It is reported at most once a minute.
	TooLarge int
}

var errRegions = errors.New("fleet: regions need a single Redis each, or Sentinels; not a cluster, nor shards")

// regions watches the other regions, and sends counts to them.
type regions struct {
	watch  *region.Watch // nil if there are none
	syncer *region.Syncer
	stores []*redis.Store
}

// open begins to watch the other regions, and to send counts to those that have a URL.
func (r *regions) open(url string, own chain.Shared, o *Options) error {
	checked := make([]redisurl.Region, len(o.Regions))
	for i, other := range o.Regions {
		checked[i] = redisurl.Region(other)
	}
	if err := redisurl.CheckRegions(redisurl.Region{Name: o.Region, URL: url}, checked); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if len(o.Regions) == 0 {
		return nil
	}
	store := own.Regions()
	if store == nil {
		return errRegions
	}
	of := region.Options{Name: o.Region, Store: store}
	if o.OnRegion != nil {
		of.OnTrouble = func(name string, err error) { o.OnRegion(RegionTrouble{Region: name, Why: err}) }
		of.OnTooLarge = func(name string, counters int) { o.OnRegion(RegionTrouble{Region: name, TooLarge: counters}) }
	}
	for _, other := range o.Regions {
		if other.URL == "" {
			continue
		}
		there, err := redis.Open(redis.Config{URL: other.URL, Username: o.Username, Password: o.Password, PasswordFile: o.PasswordFile})
		if err != nil {
			r.close()
			return fmt.Errorf("region %s: %w", other.Name, err)
		}
		r.stores = append(r.stores, there)
		shared, _ := chain.AsShared(there) // every store of package redis is one
		of.Others = append(of.Others, region.Other{Name: other.Name, Store: shared.Regions()})
	}
	r.watch, r.syncer = region.NewWatch(store, namesOf(o.Regions)), region.Sync(of)
	return nil
}

// own returns the region of this instance; nil if there are no others.
func (r *regions) own(o *Options) *eventual.Region {
	if r.watch == nil {
		return nil
	}
	names := namesOf(o.Regions)
	return &eventual.Region{
		Number: chain.RegionNumber(o.Region), Of: len(names) + 1, Rank: region.Rank(o.Region, names), CutOff: r.watch.CutOff,
	}
}

func namesOf(all []Region) (names []string) {
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

func (r *regions) close() {
	if r.watch != nil {
		r.syncer.Close()
		r.watch.Close()
	}
	for _, s := range r.stores {
		_ = s.Close()
	}
}

// Regions asks Redis when it last heard of each other region, including regions that Options do not
// name: all of those if Options.Regions is empty, otherwise those that are not cut off. Health has what
// this instance decides by.
func (s *Store) Regions(ctx context.Context) ([]RegionHealth, error) {
	all := s.regions.health()
	store := s.shared.Regions()
	if store == nil {
		return all, nil
	}
	at, now, err := store.Heard(ctx)
	for name, heard := range at {
		lag := max(now.Sub(heard), 0)
		is := RegionHealth{Name: label(name, maxName), Lag: lag, Heard: true, CutOff: lag > region.PartitionAfter}
		switch i := slices.IndexFunc(all, func(r RegionHealth) bool { return r.Name == is.Name }); {
		case i >= 0:
			all[i] = is
		case s.regions.watch == nil || !is.CutOff: // otherwise it is a former region
			all = append(all, is)
		}
	}
	slices.SortFunc(all, func(a, b RegionHealth) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

func (r *regions) health() (all []RegionHealth) {
	if r.watch == nil {
		return nil
	}
	for _, one := range r.watch.All() {
		all = append(all, RegionHealth(one))
	}
	slices.SortFunc(all, func(a, b RegionHealth) int { return strings.Compare(a.Name, b.Name) })
	return all
}
