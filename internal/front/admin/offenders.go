package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

// OffendersTopic is the topic of the Board under which instances ask each other for lists of offenders.
const OffendersTopic = "offenders"

// offenders answers who is limited most, asks most or is nearest to a limit, over the whole fleet.
func (s *server) offenders(r *http.Request) (any, error) {
	q, err := offendersQuery(r)
	if err != nil {
		return nil, err
	}
	if s.Offenders == nil {
		return nil, problemf(http.StatusNotFound, "There are no lists of offenders here.")
	}
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if s.Board == nil {
		return s.reportOrNoRule(q, offenders.Merge(q, s.Offenders(q)))
	}
	answers, missing, err := s.askFleet(r.Context(), OffendersTopic, question)
	if err != nil {
		return nil, err
	}
	var reports []offenders.Report
	for node, text := range answers {
		var one offenders.Report
		if err := json.Unmarshal(text, &one); err != nil {
			missing = append(missing, board.Absent{Node: node, Why: "its answer cannot be read"})
			continue
		}
		reports = append(reports, one)
	}
	slices.SortFunc(reports, func(a, b offenders.Report) int { return slices.Compare(a.Nodes, b.Nodes) })
	merged := offenders.Merge(q, reports...)
	merged.Missing = append(merged.Missing, absentTexts(missing)...)
	return s.reportOrNoRule(q, merged)
}

// reportOrNoRule returns the report, or an error if it is empty because there is no such rule.
func (s *server) reportOrNoRule(q offenders.Query, r offenders.Report) (any, error) {
	if q.Rule != "" && len(r.Lists) == 0 {
		if err := s.checkRule(q.Rule); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// checkRule returns an error if no rule in force has that name.
func (s *server) checkRule(name string) error {
	if s.Rules == nil {
		return nil
	}
	set := s.Rules.Live().Set()
	if slices.Contains(set.Rules(), name) || s.oneDomainRule(set, name) != nil {
		return nil
	}
	return noRule(set, name)
}

// noRule returns the error for a rule that does not exist, with the name that may have been meant.
func noRule(set *rules.Set, name string) error {
	hint := ""
	if near := diag.Nearest(name, set.Rules()); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return problemf(http.StatusNotFound, "There is no rule %s%s", name, hint)
}

func offendersQuery(r *http.Request) (q offenders.Query, err error) {
	v := r.URL.Query()
	if err := known(v, "rule", "by", "minutes", "top", "search"); err != nil {
		return q, err
	}
	q = offenders.Query{Rule: v.Get("rule"), By: offenders.By(v.Get("by")), Search: v.Get("search")}
	for name, to := range map[string]*int{"minutes": &q.Minutes, "top": &q.Top} {
		text := v.Get(name)
		if text == "" {
			continue
		}
		if *to, err = strconv.Atoi(text); err != nil {
			return q, problemf(http.StatusBadRequest, "%s has to be a number, and is %q.", name, text)
		}
	}
	if err := q.Check(); err != nil {
		return q, problemf(http.StatusBadRequest, "This cannot be asked: %v.", err)
	}
	return q, nil
}
