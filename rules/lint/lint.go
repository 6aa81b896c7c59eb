// Package lint finds rules that load but cannot be what their author meant: limits
// that can be escaped, that never refuse anybody, that never apply. It checks files
// that load; rulefile reports mistakes that prevent loading.
//
// Start with [File]. Each check has a file here, a test, testdata and a page in
// docs/lint, all with its name.
package lint

import (
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
)

// Options are what checks need beside the file.
type Options struct {
	// Now is the time that `until` is compared with; nil means time.Now.
	Now func() time.Time
	// Doors are the front ends beside the gateway that the rules are for.
	Doors []rules.Door
	// Quotas: proxies get parts of the limits from Envoy's quota service.
	Quotas bool
	// Trust says which credentials the configuration verifies; nil means that it is not known.
	Trust *Trust
	// MergeDomains: several files may have descriptors of one domain, as in [rules.Config].
	MergeDomains bool
}

// Check is one thing that lint looks for.
type Check struct {
	Name    string
	Summary string // a line
	Docs    string // its page, from the root of the repository
	run     func(*pass)
}

// Checks lists all checks, those about escape first.
var Checks = []Check{
	check("escapable-route", "every limit on a route can be escaped by omitting or inventing a value", escapableRoute),
	check("invented-key", "a rule counts per a value that the caller can invent, and the only other limit is one for everyone", inventedKey),
	check("path-in-per", "a rule counts per `path`, so that every invented path has a fresh counter", pathInPer),
	check("tier-by-claimed-value", "a caller that claims a value gets a higher limit, or none, or is more important", tierByClaimedValue),
	check("exempt-too-wide", "an exemption that anybody can claim", exemptTooWide),
	check("deny-by-client-value", "a ban that the banned client can get around", denyByClientValue),
	check("deny-everything", "an access rule refuses every request", denyEverything),
	check("victim-lockout", "anybody can lock another user out by sending their name", victimLockout),
	check("loose-spelling", "an account has many counters, because its name can be spelled in many ways", looseSpelling),
	check("one-takes-all", "one caller can use up what all callers share", oneTakesAll),
	check("ip-prefix", "an address counted so narrowly that it can be changed, or so widely that strangers share a counter", ipPrefix),
	check("fail-open-guard", "a guard against guessing lets everybody through when the store fails", failOpenGuard),
	check("claimed-cost", "the caller says what its request costs, and nothing corrects it", claimedCost),
	check("cost-unbounded", "one request may reserve as much as it likes", costUnbounded),
	check("cost-never-fits", "requests cost more than the limit can ever hold", costNeverFits),
	check("never-applies", "a rule that can never apply to a request", neverApplies),
	check("shadowed-branch", "a branch of `for` that can never be reached", shadowedBranch),
	check("instead-of-nothing", "a rule replaces another one that never applies to the same requests", insteadOfNothing),
	check("no-subtree", "a pattern for one path where everything below it is meant", noSubtree),
	check("never-bites", "a limit that is never reached, because another one of a shorter period refuses first", neverBites),
	check("day-below-hour", "a limit that is never reached, because another one of a longer period refuses first", dayBelowHour),
	check("duplicate-meaning", "two rules that limit the same requests in the same way", duplicateMeaning),
	check("boundary-burst", "a fixed window admits twice its limit around a boundary", boundaryBurst),
	check("heavy-log", "an exact log of very many events per caller", heavyLog),
	check("soft-over-100", "a soft limit that admits more than twice what it says", softOver100),
	check("candidate-equals-live", "a candidate that equals the limit it is compared with", candidateEqualsLive),
	check("consistency-needs", "a consistency mode that the limits do not support", consistencyNeeds),
	check("queue-longer-than-clients", "a queue in which requests wait longer than clients do", queueLongerThanClients),
	check("untrusted-source", "a rule reads tokens or API keys that nothing is configured to believe (only with `--config`)", untrustedSource),
	check("blind-door", "a rule says what a door cannot know or do (only with `--door`)", blindDoor),
	check("quota-door", "a rule that Envoy's quota service cannot divide (only with `--door rlqs`)", quotaDoor),
	check("expired-until", "a branch of `for` whose time has passed", expiredUntil),
	check("unused-identity", "an identity that nothing uses", unusedIdentity),
	check("unused-list", "a list that nothing uses", unusedList),
	check("domain-exempt-value", "a descriptor without a limit exempts its value from the limit of the key", domainExemptValue),
	check("domain-no-effect", "a descriptor that limits nothing and changes nothing", domainNoEffect),
	check("domain-outer-limit", "a limit that does not hold for what is below it", domainOuterLimit),
	check("domain-missing-number", "a limit without `requests_per_unit`, which refuses everything", domainMissingNumber),
	check("domain-case", "two descriptors that differ only by case", domainCase),
	check("domain-shadowed-star", "a pattern that never matches, because another one before it does", domainShadowedStar),
	check("domain-star-in-key", "a key with a star, which is not a pattern", domainStarInKey),
	check("domain-joined-keys", "two descriptors that envoyproxy/ratelimit takes for one", domainJoinedKeys),
	check("domain-replaces-nothing", "a limit replaces a name that no limit has", domainReplacesNothing),
	check("domain-shadow-replaces", "a limit that never refuses anybody replaces one that does", domainShadowReplaces),
	check("domain-metric-values", "a metric for each value that somebody sends", domainMetricValues),
	check("domain-differs", "something that envoyproxy/ratelimit counts in another way", domainDiffers),
	check("unused-waiver", "a waiver that silences nothing", unusedWaiver), // after all others
}

func check(name, summary string, run func(*pass)) Check {
	return Check{Name: name, Summary: summary, Docs: "docs/lint/" + name + ".md", run: run}
}

// File reads a rule file, or a folder of them. It returns the errors that keep it from loading or,
// if there are none, its warnings and what the checks find.
func File(name string, o Options) rules.Problems {
	return Layers([]rules.Layer{{Name: name}}, o)
}

// Layers is File for several layers that are joined.
func Layers(layers []rules.Layer, o Options) rules.Problems {
	// Read as if no branch had ended, so that expired-until can report those that have: loading
	// leaves them out.
	f, problems := rulefile.Join(layers, rulefile.Options{Now: func() time.Time { return time.Time{} }})
	return look(f, problems, o)
}

// Text is File for a file in memory. What it includes is read as if the file were called name.
func Text(name string, src []byte, o Options) rules.Problems {
	f, problems := rulefile.Parse(name, src, rulefile.Options{Now: func() time.Time { return time.Time{} }})
	return look(f, problems, o)
}

// look adds what the checks find to the problems of reading the file.
func look(f *rulefile.File, problems diag.List, o Options) diag.List {
	if f != nil {
		problems.Add(domainProblems(f, o.MergeDomains)...)
	}
	loads := f != nil && !problems.HasErrors()
	if f != nil {
		problems.Add(unknownWaivers(f)...)
	}
	if loads {
		problems.Add(run(f, o)...)
	}
	problems = problems.Bounded()
	problems.Sort()
	return problems
}

// run applies every check to a file. The problems are sorted by position; each has the name of its
// check.
func run(f *rulefile.File, o Options) diag.List {
	if o.Now == nil {
		o.Now = time.Now
	}
	p := newPass(f, o.Now())
	p.doors, p.quotas, p.trust = o.Doors, o.Quotas, o.Trust
	var cut []string
	for _, c := range Checks {
		if !p.run(c) {
			cut = append(cut, diag.Quote(c.Name))
			continue
		}
		p.done[c.Name] = !p.partly
	}
	if len(cut) > 0 {
		p.check = ""
		p.warn(f.Pos, "the file is so large that some checks have looked at a part of it: "+strings.Join(cut, ", "), "")
	}
	return p.found.List()
}

// maxSteps is how many comparisons a check may make: many compare everything with everything, and a
// file of a megabyte must not take minutes.
const maxSteps = 10_000_000

// spent is what step panics with when a check has used up its comparisons.
type spent struct{}

// run applies one check. It returns false if the check was cut short; what it found until then
// counts.
func (p *pass) run(c Check) (whole bool) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case spent:
			whole = false
		default:
			panic(why)
		}
	}()
	p.check, p.steps, p.partly = c.Name, maxSteps, false
	c.run(p)
	return true
}

// step counts n comparisons that are about to be made.
func (p *pass) step(n int) {
	if p.steps -= n; p.steps < 0 {
		panic(spent{})
	}
}

// reported is a problem as it was reported.
type reported struct {
	check   string
	pos     diag.Pos
	message string
}

// pass is the state of checking one file.
type pass struct {
	whole   *rulefile.File
	domains *domainfile.File // nil if no file has a domain
	file    *rulefile.File   // without branches that have ended
	now     time.Time
	doors   []rules.Door
	quotas  bool   // see Options.Quotas
	trust   *Trust // nil means unknown
	check   string // the current one
	steps   int    // comparisons that it may still make
	found   diag.Tally
	told    reported                   // the last one reported
	lists   map[string][]rulefile.Test // those in the rule file itself

	waivers []*waiver
	waive   map[waiverKey][]*waiver
	open    map[string]diag.Pos // by check: the first problem that is not waived
	done    map[string]bool     // checks that had all they needed
	partly  bool                // the current check lacks some of what it needs

	shapes  map[*rulefile.Rule][]shape // of their match
	byFirst map[string][]int           // indexes of enforced rules, by shape.first
	asked   map[string][]*route        // by pattern, see routesOf
	escapes map[*route]*escape         // see wayOut
	escaped []*escape                  // what escapable-route found
	claimed map[diag.Pos]bool          // names that tier-by-claimed-value has reported
}

func newPass(f *rulefile.File, now time.Time) *pass {
	p := &pass{
		whole: f, file: inForce(f, now), now: now, steps: maxSteps,
		shapes:  make(map[*rulefile.Rule][]shape),
		byFirst: make(map[string][]int),
		asked:   make(map[string][]*route),
		escapes: make(map[*route]*escape),
		lists:   make(map[string][]rulefile.Test),
		claimed: make(map[diag.Pos]bool),
		waive:   make(map[waiverKey][]*waiver),
		open:    make(map[string]diag.Pos),
		done:    make(map[string]bool),
	}
	p.domains = domainsOf(f)
	for _, w := range slices.Concat(f.Waive, domainWaivers(p.domains)) {
		p.addWaiver(&w)
	}
	for _, l := range f.Lists {
		if l.File == "" {
			p.lists[l.Name.Text] = l.Tests
		}
	}
	for i, r := range p.file.Rules {
		p.shapes[r] = shapes(r.Match)
		for _, s := range p.shapes[r] {
			if enforced(r) {
				p.byFirst[s.first()] = append(p.byFirst[s.first()], i)
			}
		}
	}
	return p
}

// inForce returns f without the branches whose time has passed.
func inForce(f *rulefile.File, now time.Time) *rulefile.File {
	file := *f
	file.Rules = nil
	for _, r := range f.Rules {
		rule := *r
		rule.For = nil
		for _, b := range r.For {
			if !ended(&b, now) {
				rule.For = append(rule.For, b)
			}
		}
		file.Rules = append(file.Rules, &rule)
	}
	return &file
}

// report adds a problem: message says what is wrong, hint what to write.
func (p *pass) report(pos diag.Pos, s diag.Severity, message, hint string) {
	if p.told == (reported{p.check, pos, message}) { // a tier or table would repeat it for each of its branches
		return
	}
	p.told = reported{p.check, pos, message}
	problem := p.file.Problem(pos, s, message, hint)
	p.add(problem)
}

// add adds a problem that the current check found, unless the file waives it.
func (p *pass) add(problem diag.Problem) {
	problem.Check = p.check
	if w := p.waiver(problem.Pos); w != nil {
		w.used = true
		problem.Waived = w.Reason
	} else if _, told := p.open[p.check]; !told {
		p.open[p.check] = problem.Pos
	}
	p.found.Add(problem)
}

func (p *pass) fail(pos diag.Pos, message, hint string) { p.report(pos, diag.Error, message, hint) }
func (p *pass) warn(pos diag.Pos, message, hint string) { p.report(pos, diag.Warning, message, hint) }
