package admin

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Verdict says whether all is well.
type Verdict struct {
	Level string `json:"level"` // ok, warn or bad
	Text  string `json:"text"`  // the worst, in a sentence
	// More is what else is wrong.
	More []string `json:"more,omitempty"`
}

func (v *Verdict) add(level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case v.Level == "":
		v.Level, v.Text = level, text
	case level == "bad" && v.Level == "warn":
		v.More = append([]string{v.Text}, v.More...)
		v.Level, v.Text = level, text
	default:
		v.More = append(v.More, text)
	}
}

// verdict returns an assessment from what is known of the rules and the fleet. unknown says why the
// fleet could not be asked.
func (s *server) verdict(status *RulesStatus, fleet *Fleet, unknown string) Verdict {
	var v Verdict
	for _, ready := range s.Ready {
		if err := ready(); err != nil {
			v.add("bad", "Requests should go elsewhere: %v", err)
		}
	}
	s.addStore(&v, fleet, unknown)
	if s.Rules == nil {
		v.add("warn", "There are no rules, so nothing is limited")
	} else if st := s.Rules.Status(); st.LastError != "" && !st.None {
		v.add("warn", "The rules in the files do not load; those loaded before are in force")
	}
	for _, w := range status.Warnings {
		v.add("warn", "%s", sentence(w))
	}
	for _, w := range append(s.sourceWarnings(), s.trustWarnings()...) {
		v.add("warn", "%s", sentence(w))
	}
	if s.Warnings != nil {
		for _, w := range s.Warnings() {
			v.add("warn", "%s", sentence(w))
		}
	}
	if v.Level == "" {
		v = Verdict{Level: "ok", Text: "All well"}
	}
	return v
}

// addStore adds the state of the store, and on how many instances it is bad.
func (s *server) addStore(v *Verdict, fleet *Fleet, unknown string) {
	if s.Health == nil {
		return
	}
	h := s.Health()
	for _, w := range h.Warnings {
		v.add("warn", "%s", sentence(w))
	}
	if s.Fleet == nil {
		if h.Status != "ok" {
			v.add("warn", "The memory of counters is %s: %s", h.Status, cmp.Or(h.Why, "the least used ones make room"))
		}
		return
	}
	away, all := 0, len(fleet.Instances)
	since := h.Since
	if h.Status == "ok" { // then that is how long it has been ok here
		since = time.Time{}
	}
	for i := range fleet.Instances {
		c := fleet.Instances[i].Circuit
		if c == nil || c.Status == "ok" || c.Status == "unknown" {
			continue
		}
		away++
		if h.Status == "ok" && (since.IsZero() || c.Since.Before(since)) {
			since = c.Since
		}
	}
	switch {
	case h.Status == "ok" && away == 0 && unknown == "":
	case h.Status == "ok" && away == 0:
		v.add("warn", "The instances cannot be listed: %s", unknown)
	case all == 0: // the store cannot list the instances
		v.add("bad", "Redis %s%s, deciding locally on this node; the others cannot be asked", storeWord(h.Status), forText(since))
	default:
		v.add("bad", "Redis %s%s, deciding locally on %d of %d nodes", storeWord(cmp.Or(notOK(h.Status), "degraded")), forText(since), max(away, 1), all)
	}
}

func notOK(status string) string {
	if status == "ok" {
		return ""
	}
	return status
}

func storeWord(status string) string {
	if status == "partial" {
		return "answers in part"
	}
	return status
}

// forText returns how long something has lasted: " for 3 min".
func forText(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + span(time.Since(since))
}

// span returns a duration in words.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 1))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// nodesOf joins what instances say about their rules and what their heartbeats say.
func nodesOf(status *RulesStatus, fleet *Fleet, now time.Time) []NodeState {
	all := []NodeState{}
	at := make(map[string]int)
	for i := range status.Instances {
		one := &status.Instances[i]
		if one.Follows {
			continue
		}
		n := NodeState{
			ID: one.ID, Name: cmp.Or(one.Name, one.ID, "this process"), Self: one.Self, Version: one.Version,
			Revision: shownHash(one.Hash), Since: one.Since, Store: "ok",
			Problem: cmp.Or(one.Unanswered, strings.Join(one.Behind, "; ")),
		}
		if len(one.Layers) == 1 && one.Layers[0].Revision != "" {
			n.Revision = shownHash(one.Layers[0].Revision)
		}
		at[one.ID] = len(all)
		all = append(all, n)
	}
	for i := range fleet.Instances {
		one := &fleet.Instances[i]
		n, known := at[one.ID]
		if !known {
			n = len(all)
			all = append(all, NodeState{ID: one.ID, Name: cmp.Or(one.Name, one.ID), Self: one.Self, Version: one.Version, Revision: one.Rules})
		}
		if c := one.Circuit; c != nil {
			all[n].Store = c.Status
			all[n].StoreFor = max(now.Sub(c.Since).Seconds(), 0)
		} else {
			all[n].Store = "unknown"
		}
	}
	return all
}

// shownHash shortens a hash to what people compare; other revisions stay as they are.
func shownHash(revision string) string {
	const most = 12
	if len(revision) > 32 && strings.Trim(revision, "0123456789abcdef") == "" {
		return revision[:most]
	}
	return revision
}
