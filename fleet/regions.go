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

// Region is another region of a fleet in several, with a Redis of its own.
type Region struct {
	Name string
	// URL of its Redis, a single server or Sentinels. "" means that this instance does not reach it:
	// somebody else in this region tells it what is counted here, such as `tidegate region-sync`.
	URL string
}

// RegionHealth is how far what is known of another region is behind.
type RegionHealth struct {
	Name string
	// Lag is how old the oldest thing is that was counted there and may not be known here.
	Lag time.Duration
	// Heard: Redis knows when it was heard of. Otherwise Lag counts from Open.
	Heard bool
	// CutOff: it has not been heard of for five seconds, so OnPartition of each limit decides.
	CutOff bool
}

// RegionTrouble is about a region that cannot be told what is counted here, or not all of it.
type RegionTrouble struct {
	Region string
	Why    error // nil means it can again, unless there is TooLarge
	// TooLarge is how many counters have so many windows and instances that the region is not told
	// of them: each region has the whole limit of those. It is reported at most once a minute.
	TooLarge int
}

var errRegions = errors.New("fleet: regions need a single Redis each, or Sentinels; not a cluster, nor shards")

// regions are the others of a fleet in several.
type regions struct {
	watch  *region.Watch // nil if there are none
	syncer *region.Syncer
	stores []*redis.Store
}

// open begins to watch the others, and to tell those that have a URL.
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

// own is where this instance is; nil if there are no regions.
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

// Regions asks Redis when other regions were last heard of, also those that Options do not name: without
// Options.Regions all, otherwise those that are heard of now. Health has what this instance goes by.
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
		case s.regions.watch == nil || !is.CutOff: // otherwise it was one, and has been taken out
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
