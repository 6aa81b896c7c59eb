package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CombineReports combines the reports of all instances, and says which of them do not run the newest
// revisions.
func CombineReports(all []InForce, now time.Time) RulesStatus {
	is := RulesStatus{Instances: append([]InForce{}, all...)}
	layers := make(map[string][]*Layer)
	for i := range is.Instances {
		for j := range is.Instances[i].Layers {
			l := &is.Instances[i].Layers[j]
			layers[l.Name] = append(layers[l.Name], l)
		}
	}
	newest := make(map[string]*Newest)
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		n := newestOf(name, layers[name])
		is.Layers = append(is.Layers, n)
		newest[name] = &n
	}
	for i := range is.Instances {
		one := &is.Instances[i]
		if !one.Follows { // this instance knows more about its followers than they report
			one.Behind = nil
		}
		for j := range one.Layers {
			one.Behind = append(one.Behind, behind(&one.Layers[j], newest[one.Layers[j].Name], now)...)
		}
	}
	lagging(is.Instances)
	is.Refusals = refusals(is.Instances)
	is.Warnings = rulesWarnings(is.Instances)
	is.Current = len(is.Warnings) == 0
	return is
}

// newestOf returns the newest revision in force of one layer. If any instances can reach the
// source, only theirs count. Numeric revisions are compared as numbers; of others, the one that
// came into force last counts.
func newestOf(name string, seen []*Layer) Newest {
	n := Newest{Name: name, Of: len(seen)}
	heard := slices.DeleteFunc(slices.Clone(seen), func(l *Layer) bool { return l.Error != "" || l.Copy })
	if len(heard) == 0 {
		heard = seen
	}
	first := make(map[string]*Layer)
	numbers := true
	for _, l := range heard {
		if f := first[l.Revision]; f == nil || l.Since.Before(f.Since) {
			first[l.Revision] = l
		}
		_, ok := numberOf(l.Revision)
		numbers = numbers && ok
	}
	best := slices.MaxFunc(slices.Collect(maps.Values(first)), func(a, b *Layer) int {
		if numbers {
			x, _ := numberOf(a.Revision)
			y, _ := numberOf(b.Revision)
			return cmp.Or(cmp.Compare(x, y), a.Since.Compare(b.Since))
		}
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Revision, b.Revision))
	})
	n.Revision, n.Since, n.Author, n.Reason = best.Revision, best.Since, best.Author, best.Reason
	for _, l := range seen {
		if l.Revision == n.Revision {
			n.On++
		}
	}
	return n
}

// numberOf returns the number of a revision of an archive: 12, or 12-0123abcd with part of a hash.
func numberOf(revision string) (uint64, bool) {
	digits, _, _ := strings.Cut(revision, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// behind returns why an instance does not run the newest revision of a layer, or may not.
func behind(l *Layer, newest *Newest, now time.Time) (why []string) {
	if l.Refused != nil {
		why = append(why, fmt.Sprintf("it refuses %s of %s and goes on with %s", revisionText(l.Refused.Revision), l.Name, revisionText(l.Revision)))
	}
	if l.Revision != newest.Revision {
		why = append(why, fmt.Sprintf("it runs %s of %s, and %s is in force elsewhere since %s",
			revisionText(l.Revision), l.Name, revisionText(newest.Revision), newest.Since.UTC().Format(time.TimeOnly+" UTC")))
	}
	switch {
	case l.Copy:
		why = append(why, fmt.Sprintf("it runs the copy on its disk: %s has not answered since it started%s", l.Name, because(l.Error)))
	case l.Error != "" && l.Reached.IsZero():
		why = append(why, fmt.Sprintf("%s has never answered it%s", l.Name, because(l.Error)))
	case l.Error != "":
		why = append(why, fmt.Sprintf("%s has not answered it for %s%s", l.Name, max(now.Sub(l.Reached), 0).Truncate(time.Second), because(l.Error)))
	}
	return why
}

// lagging returns which followers of the answering instance do not apply its rules.
func lagging(all []InForce) {
	at := slices.IndexFunc(all, func(one InForce) bool { return one.Self })
	for i := range all {
		one := &all[i]
		if at >= 0 && one.Follows && len(one.Behind) == 0 && one.Hash != all[at].Hash {
			one.Behind = append(one.Behind, fmt.Sprintf("it runs the rules %s, and follows those that are %s here since %s",
				cmp.Or(one.Hash[:min(len(one.Hash), 16)], "(none)"), all[at].Hash[:min(len(all[at].Hash), 16)], all[at].Since.UTC().Format(time.TimeOnly+" UTC")))
		}
	}
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// revisionText names a revision. Hashes are cut.
func revisionText(revision string) string {
	const most = 16
	switch {
	case revision == "":
		return "what is new"
	case len(revision) > most && strings.Trim(revision, "0123456789abcdef") == "":
		revision = revision[:most]
	}
	return "revision " + revision
}

// refusals lists what instances refuse, each message once.
func refusals(all []InForce) (list []Refusal) {
	type key struct{ layer, revision, message string }
	at := make(map[key]int)
	for i := range all {
		for _, l := range all[i].Layers {
			if l.Refused == nil {
				continue
			}
			k := key{l.Name, l.Refused.Revision, l.Refused.Message}
			n, known := at[k]
			if !known {
				n = len(list)
				at[k] = n
				list = append(list, Refusal{Layer: k.layer, Revision: k.revision, Message: k.message, Since: l.Refused.Since})
			}
			r := &list[n]
			if l.Refused.Since.Before(r.Since) {
				r.Since = l.Refused.Since
			}
			r.On = append(r.On, cmp.Or(all[i].Name, all[i].ID))
		}
	}
	return list
}

// rulesWarnings returns what operators should look at; nothing if all run the same.
func rulesWarnings(all []InForce) (list []string) {
	var reference *InForce // what others are compared with
	for i := range all {
		one := &all[i]
		name := cmp.Or(one.Name, one.ID)
		switch {
		case one.Unanswered != "":
			list = append(list, fmt.Sprintf("it is not known what %s runs: %s", name, one.Unanswered))
			continue
		case len(one.Behind) > 0:
			list = append(list, name+" is behind: "+strings.Join(one.Behind, "; "))
			continue
		}
		if one.Follows { // it may have further rules of its own
			continue
		}
		if reference == nil {
			reference = one
			continue
		}
		if one.Hash == reference.Hash {
			continue
		}
		other := cmp.Or(reference.Name, reference.ID)
		if names := layerNames(one); !slices.Equal(names, layerNames(reference)) {
			list = append(list, fmt.Sprintf("%s follows %s, and %s follows %s: their rules differ", name, listed(names), other, listed(layerNames(reference))))
		} else {
			list = append(list, fmt.Sprintf("the rules of %s (%.16s) and of %s (%.16s) differ, although their sources say the same", name, one.Hash, other, reference.Hash))
		}
	}
	return list
}

func layerNames(one *InForce) (names []string) {
	for _, l := range one.Layers {
		names = append(names, l.Name)
	}
	return names
}
