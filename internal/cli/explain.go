package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

var explainCommand = command{
	name:    "explain",
	summary: "Show which rules apply to a request, and why the others do not.",
	help: `
Usage: tidegate explain [FLAGS] [METHOD] URL
       tidegate explain [FLAGS] --curl 'curl …'
       tidegate explain [FLAGS] --request FILE

Prints the identities of the request, each rule and why it applies or not, the keys
and limits it uses, and the answer to a caller that has used nothing yet. Nothing is
charged anywhere. With --was it shows which limits apply just after a reload: which
counters continue from those of the old rules.

Examples:
  tidegate explain --as user=42 --as role=premium POST /posts
  tidegate explain --ip 203.0.113.9 -H 'X-Api-Key: abc' GET /api/things
  tidegate explain --curl "curl -XPOST https://example.com/login -d user=x"
  echo '{"method":"POST","url":"/v1/chat","body":{"max_tokens":5}}' | tidegate explain --request -`,
	takes: takes{
		words:  methods,
		values: map[string][]string{"door": {quotaDoor}},
	},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := explainOptions{draft: newDraft(describe.Someone), rules: layerNames{names: []string{"rules.yaml"}}}
		flags.Var(&o.rules, "rules", "`FILE` or folder of rules; repeated, or with commas between, they are layers of one rule set")
		flags.StringVar(&o.was, "was", "", "`FILE` or folder of the rules that these have just replaced")
		o.draft.flags(flags, "`NAME=VALUE` of an identity, instead of the one in the request; may be repeated", "the cost that the caller sends")
		flags.BoolVar(&o.all, "all", false, "show the rules for other paths and methods, too")
		flags.BoolVar(&o.json, "json", false, "print JSON")
		flags.Func("door", "also say what a bucket of Envoy's quota service gets that is described like the request: `DOOR` is rlqs", o.setDoor)
		return o.run
	},
}

type explainOptions struct {
	rules     layerNames
	was       string
	all, json bool
	quota     bool // also say what the quota service assigns
	draft     draft
}

// explained is what the command prints.
type explained struct {
	rules.Explanation
	Answer answer `json:"answer"`
	Quota  string `json:"quota,omitempty"` // what the quota service assigns
}

// answer is the answer to a caller that has used nothing yet.
type answer struct {
	Status  int         `json:"status"` // 200 stands for whatever the server answers
	Rule    string      `json:"rule,omitempty"`
	Headers http.Header `json:"headers"`
	Body    string      `json:"body,omitempty"`
}

func (o *explainOptions) setDoor(name string) error {
	if name != quotaDoor {
		return errors.New("there is rlqs")
	}
	o.quota = true
	return nil
}

func (o *explainOptions) run(_ context.Context, env Env, args []string) int {
	if err := o.draft.describe(env, args); err != nil {
		return misused(env, "explain", "%v", err)
	}
	set, err := rules.LoadLayers(onDisk(o.rules.names), rules.Config{MergeDomains: true})
	if err != nil {
		problemsOf(err).Write(env.Stderr, false)
		return exitFound
	}
	if err := o.draft.known(set.Identities()); err != nil {
		return misused(env, "explain", "%v", err)
	}
	request, err := o.draft.Request.Request()
	if err != nil {
		return misused(env, "explain", "%v", err)
	}
	live := rules.NewLive(set)
	var old *rules.Set
	if o.was != "" {
		if old, err = rules.Load(o.was, rules.Config{MergeDomains: true}); err != nil {
			problemsOf(err).Write(env.Stderr, false)
			return exitFound
		}
		live = rules.NewLive(old)
		live.Swap(set)
	}
	e := explained{Explanation: live.Explain(request)}
	if old != nil {
		e.compare(old.Explain(request))
	}
	if e.Answer, err = o.answer(set); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate explain:", err)
		return exitFound
	}
	if o.quota {
		e.Quota = quotaOf(&e.Explanation)
	}
	if o.json {
		return printJSON(env, e)
	}
	e.print(&env, o.all)
	if domains := set.Domains().Domains(); len(domains) > 0 {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.paint(dim, "Not about Envoy's rate limit service, which is asked by descriptors: "+plural(len(domains), "domain")+", "+strings.Join(domains, ", ")))
	}
	return exitOK
}

// answer puts the request through the middleware, with empty counters of its own.
func (o *explainOptions) answer(set *rules.Set) (a answer, err error) {
	request, err := o.draft.HTTP()
	if err != nil {
		return a, err
	}
	gate := tidegate.NewGate(o.draft.Matcher(set), memory.New())
	gate = gate.Observe(func(_ *tidegate.Request, _ []tidegate.Check, d tidegate.Decision) {
		if d.Limit != nil && d.Limit.Terms != nil {
			a.Rule = d.Limit.Terms.Rule
		}
	})
	w := httptest.NewRecorder()
	httplimit.Gate(gate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, request)
	a.Status, a.Headers, a.Body = w.Code, w.Header(), strings.TrimSpace(w.Body.String())
	return a, nil
}

// compare notes in each rule which tier or row the request had under the old rules, if it was another.
func (e *explained) compare(was rules.Explanation) {
	for i := range e.Rules {
		now := &e.Rules[i]
		for j := range was.Rules {
			old := &was.Rules[j]
			if old.Name != now.Name || !old.Applies || old.Tier == now.Tier && old.Row == now.Row {
				continue
			}
			var parts []string
			for _, part := range []string{"tier " + old.Tier, "row " + old.Row} {
				if !strings.HasSuffix(part, " ") {
					parts = append(parts, part)
				}
			}
			for _, c := range old.Checks {
				if c.Role == "decides" {
					parts = append(parts, c.Limit)
				}
			}
			now.Was = strings.Join(parts, ", ")
		}
	}
}
