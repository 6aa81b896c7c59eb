package redisurl

import (
	"errors"
	"fmt"
	"strings"
)

// Region is a region of a fleet in several, with the URL of its Redis; "" means that it is not known.
type Region struct{ Name, URL string }

// MaxRegions is how many regions there may be.
const MaxRegions = 16

const maxRegionName = 32

// Check reports what is wrong with a region by itself.
func (r Region) Check() error {
	if err := CheckRegionName(r.Name); err != nil || r.URL == "" {
		return err
	}
	t, err := Shard(r).target()
	switch {
	case err != nil:
		return fmt.Errorf("region %s: %w", r.Name, err)
	case t.Cluster:
		return fmt.Errorf("region %s: it is a cluster, and regions need a single server each, or Sentinels", r.Name)
	}
	return nil
}

// CheckRegionName reports what is wrong with the name of a region.
func CheckRegionName(name string) error {
	ok := name != "" && len(name) <= maxRegionName
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	if !ok {
		return fmt.Errorf("the name %.80q of a region: use up to %d letters, digits and ._-", name, maxRegionName)
	}
	return nil
}

// CheckRegions reports what is wrong with a region and with the others; no name and no others is
// one region without a name. Its URL is checked elsewhere: here it is only held against the others.
func CheckRegions(own Region, others []Region) error {
	switch {
	case own.Name == "" && len(others) == 0:
		return nil
	case own.Name == "":
		return errors.New("there are other regions, and this one has no name")
	case len(others) == 0:
		return fmt.Errorf("region %s is the only one: list the others, or leave its name out", own.Name)
	case len(others)+1 > MaxRegions:
		return fmt.Errorf("there are %d regions: at most %d can be used", len(others)+1, MaxRegions)
	}
	if err := CheckRegionName(own.Name); err != nil {
		return err
	}
	all := []Region{own}
	for _, r := range others {
		if err := r.Check(); err != nil {
			return err
		}
		for _, known := range all {
			switch {
			case known.Name == r.Name:
				return fmt.Errorf("two regions are called %s: give each a name of its own, the same everywhere", r.Name)
			case r.URL != "" && known.dataSet() == r.dataSet():
				return fmt.Errorf("regions %s and %s have the same Redis: each region needs one of its own", known.Name, r.Name)
			}
		}
		all = append(all, r)
	}
	return nil
}

// dataSet names what the URL of a region leads to; "" if that is not known.
func (r Region) dataSet() string {
	if _, err := Shard(r).target(); err != nil {
		return ""
	}
	return Shard(r).server() + " " + prefixOf(Shard(r))
}
