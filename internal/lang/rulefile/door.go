package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Door is a front end that answers whether requests may pass, but does not forward them.
type Door string

const (
	DoorForwardAuth Door = "forward-auth" // proxies ask by the head of a request
	DoorCheck       Door = "check"        // programs ask over HTTP
	DoorRESP        Door = "resp"         // programs ask by the protocol of Redis
	DoorRLS         Door = "rls"          // Envoy asks by descriptors
)

// report returns the command by which callers of the door report the outcome of a request; "" means
// that they cannot.
func (d Door) report() string {
	switch d {
	case DoorCheck:
		return "POST /v1/report"
	case DoorRESP:
		return "TG.SETTLE"
	}
	return ""
}

// Blind returns a warning for each rule that needs what a door cannot know or do: the response to a
// request, delaying it, its body.
func (f *File) Blind(door Door) diag.List {
	var all diag.List
	unseen := slices.ContainsFunc(f.Identify, func(id Identity) bool { return slices.ContainsFunc(id.Sources, Source.unseen) })
	for _, r := range f.Rules {
		if r.Mode == Disabled || r.plain() && !unseen {
			continue
		}
		if parts := f.blindTo(r, door); len(parts) > 0 {
			message := "at the door " + string(door) + " the rule " + diag.Quote(r.Name.Text) + " is held differently: " + strings.Join(parts, "; ")
			all.Add(f.Problem(r.Name.Pos, diag.Warning, message, door.hint(r)))
		}
	}
	return all
}

// hint returns what to do if r must not be held differently at the door.
func (d Door) hint(r *Rule) string {
	ends := r.Count != nil || r.settles() // the outcome of a request matters
	switch by := d.report(); {
	case !ends:
		return "pass these requests through the gateway if that matters"
	case by != "":
		return "let callers report how requests end, with the ticket of the answer: " + by
	}
	return "pass these requests through the gateway, or ask by POST /v1/check and report how they end"
}

// any reports whether has returns true for the terms of the rule, or of one of its branches.
func (r *Rule) any(has func(*Terms) bool) bool {
	return has(&r.Terms) || slices.ContainsFunc(r.For, func(b Branch) bool { return has(&b.Terms) })
}

// settles reports whether the rule or one of its branches has a cost with `settle`.
func (r *Rule) settles() bool {
	return r.any(func(t *Terms) bool { return t.Cost != nil && t.Cost.Settle != "" })
}

// unseen reports whether the source is one that proxies do not pass on when they ask a door.
func (s Source) unseen() bool { return s.Kind == SourceBody || s.Kind == SourceTLSClientCN }

// plain reports whether the rule needs nothing that some door may not know or do, apart from the
// sources of its identities. Most rules are plain, and are not examined further.
func (r *Rule) plain() bool {
	return r.Count == nil && r.Defer == nil && !r.any(func(t *Terms) bool {
		return t.Quota != nil || t.Concurrency != nil || t.Over != nil || t.Cost != nil || t.Queue != nil ||
			t.Limits != nil && slices.ContainsFunc(t.Limits.All, func(l Limit) bool { return l.From != nil })
	})
}

// blindTo returns in what ways a rule is held differently at a door, one text for each.
func (f *File) blindTo(r *Rule, door Door) (parts []string) {
	add := func(holds bool, text string) {
		if holds {
			parts = append(parts, text)
		}
	}
	unless := ""
	if by := door.report(); by != "" {
		unless = ", unless the caller reports it by " + by
	}
	towards := ""
	if r.Block != 0 {
		towards = ", also towards `block`"
	}
	add(r.Count != nil, "`count` charges every request"+towards+", as the status is not known"+unless)
	add(r.settles(), "`settle` does not happen and the estimate stays charged, as the true cost is not known"+unless)
	add(r.any(func(t *Terms) bool { return t.Over != nil && t.Over.Elastic != nil }), "`elastic` is hard")
	add(r.any(func(t *Terms) bool { return t.Queue != nil }), "`queue` refuses with the wait as Retry-After, as nobody can wait there")
	add(r.Defer != nil, "`defer` refuses, as nothing can be kept there")
	if door != DoorForwardAuth && door != DoorRLS {
		for _, name := range f.namesOf(r) {
			id, _ := f.Identity(name)
			add(slices.ContainsFunc(id.Sources, func(s Source) bool { return s.Kind == SourceTLSClientCN }),
				diag.Quote(name)+" is not found in a client certificate, as the connection is the caller's, unless the caller names it")
		}
		return parts
	}
	add(r.any(func(t *Terms) bool { return t.Concurrency != nil }), "`concurrency` holds a slot for its whole lease, as the end is not known")
	for _, name := range f.namesOf(r) {
		id, _ := f.Identity(name)
		for _, s := range id.Sources {
			add(s.Kind == SourceBody, diag.Quote(name)+" is not found in the body, which is not sent there")
			add(s.Kind == SourceTLSClientCN, diag.Quote(name)+" is not found in a client certificate, as the connection is the proxy's")
		}
	}
	for _, s := range sourcesOf(r) {
		add(s.Kind == SourceBody, diag.Quote(s.Text)+" is not found, as the body is not sent there")
	}
	return parts
}

// namesOf returns the names in per and in the conditions of a rule, its branches and, if it uses
// them, the classes, each once.
func (f *File) namesOf(r *Rule) (names []string) {
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, w := range r.Per {
		add(w.Text)
	}
	conditions := slices.Concat(r.When, r.Unless)
	for _, b := range r.For {
		conditions = append(conditions, slices.Concat(b.When, b.Unless)...)
	}
	if len(r.SetAside) > 0 || r.Shed != nil {
		for _, c := range f.Classes {
			conditions = append(conditions, slices.Concat(c.When, c.Unless)...)
		}
	}
	for _, c := range conditions {
		add(c.Name.Text)
	}
	return names
}

// sourcesOf returns the sources of numbers in a rule and its branches: of limits, estimated costs and
// anchors.
func sourcesOf(r *Rule) (all []Source) {
	of := func(t *Terms) {
		if t.Limits != nil {
			for _, l := range t.Limits.All {
				if l.From != nil {
					all = append(all, l.From.Source)
				}
			}
		}
		if t.Cost != nil {
			all = append(all, t.Cost.Reserve...)
		}
		if t.Quota != nil && t.Quota.AnchorFrom != nil {
			all = append(all, *t.Quota.AnchorFrom)
		}
	}
	of(&r.Terms)
	for i := range r.For {
		of(&r.For[i].Terms)
	}
	return all
}
