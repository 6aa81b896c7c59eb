package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/describe"
)

var askCommand = command{
	name:    "ask",
	summary: "Ask a running server whether a request may pass.",
	help: `
Usage: tidegate ask [FLAGS] [METHOD] URL
       tidegate ask [FLAGS] --request FILE

Puts the request to the check listener of a running server, which decides and charges it,
and prints the decision. With --peek nothing is charged. The exit code is 0 if the request
may pass and 1 if not.

A rule that counts by status counts the request, whatever becomes of it, until its status is
reported with the ticket (POST /v1/report). With --report that is promised: until then the
request is in flight and starts no block.

The server is the check listener of tidegate serve (listen.check): --server, or
TIDEGATE_CHECK_SERVER. Its token, if it has one, is in --token-file, in the file that
TIDEGATE_CHECK_TOKEN_FILE names, or in TIDEGATE_CHECK_TOKEN.

Examples:
  tidegate ask --as user=42 POST /posts
  tidegate ask --peek --ip 203.0.113.9 GET /api/things
  tidegate ask --as user=42 --cost 500 --json POST https://api.example.com/v1/chat`,
	takes: takes{words: methods},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := askOptions{draft: newDraft(""), remote: remote{listener: checkListener}}
		o.remote.flags(flags)
		o.draft.flags(flags, "`NAME=VALUE` of an identity; may be repeated", "what the request costs")
		flags.BoolVar(&o.peek, "peek", false, "charge nothing")
		flags.BoolVar(&o.report, "report", false, "how the request ends will be reported, with the ticket")
		flags.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

type askOptions struct {
	draft              draft
	remote             remote
	peek, report, json bool
}

// asked is the request as the check API expects it.
type asked struct {
	Method  string            `json:"method,omitempty"`
	Host    string            `json:"host,omitempty"`
	Path    string            `json:"path"`
	IP      string            `json:"ip,omitempty"`
	Headers http.Header       `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Cost    int64             `json:"cost,omitempty"`
	As      map[string]string `json:"as,omitempty"`
	Report  bool              `json:"report,omitempty"`
}

// checkReply is the answer of the check API.
type checkReply struct {
	Decision   string   `json:"decision"`
	Rule       string   `json:"rule"`
	Limit      *int64   `json:"limit"`
	Remaining  int64    `json:"remaining"`
	RetryAfter float64  `json:"retry_after"`
	Ticket     string   `json:"ticket"`
	Soft       bool     `json:"soft"`
	Never      bool     `json:"never"`
	Fallback   bool     `json:"fallback"`
	Reason     string   `json:"reason"`
	Unknown    []string `json:"unknown"`
}

func (o *askOptions) run(ctx context.Context, env Env, args []string) int {
	if err := o.draft.describe(env, args); err != nil {
		return misused(env, "ask", "%v", err)
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "ask", "%v", err)
	}
	if o.peek && o.report {
		return misused(env, "ask", "with --peek there is nothing to report")
	}
	path := "/v1/check"
	if o.peek {
		path = "/v1/peek"
	}
	var raw json.RawMessage
	var r checkReply
	err := o.remote.post(ctx, path, o.question(), &raw)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate ask:", err)
		return exitFound
	}
	for _, name := range r.Unknown {
		fmt.Fprintf(env.Stderr, "tidegate ask: the rules have no identity %q, which changes nothing\n", name)
	}
	if o.json {
		if code := printJSON(env, raw); code != exitOK {
			return code
		}
	} else {
		r.print(&env)
	}
	if r.Decision != "allowed" {
		return exitFound
	}
	return exitOK
}

// question returns what is asked. The path, with its query, stays as it was written.
func (o *askOptions) question() asked {
	d := &o.draft
	host, path := "", "/"
	at, _ := describe.CutScheme(d.URL)
	if end := strings.IndexAny(at, "/?#"); end < 0 {
		host = at
	} else if host, path = at[:end], at[end:]; path[0] != '/' {
		path = "/" + path
	}
	return asked{d.Method, host, path, d.IP, d.Header, d.Body, d.Cost, d.As, o.report}
}

func (r *checkReply) print(env *Env) {
	color := red
	if r.Decision == "allowed" {
		color = green
	}
	text := env.paint(color, r.Decision)
	if r.Rule != "" {
		text += " by " + r.Rule
	}
	if r.Limit != nil {
		text += fmt.Sprintf(": %d of %d left", r.Remaining, *r.Limit)
	}
	switch {
	case r.Never:
		text += ", and the cost can never fit"
	case r.RetryAfter > 0:
		text += ", try again in " + time.Duration(r.RetryAfter*float64(time.Second)).Round(time.Millisecond).String()
	case r.Soft:
		text += ", above the limit"
	}
	fmt.Fprintln(env.Stdout, text)
	if r.Fallback {
		fmt.Fprintln(env.Stdout, "the store did not answer: the rule's on_store_failure decided")
	}
	if r.Reason != "" {
		fmt.Fprintln(env.Stdout, r.Reason)
	}
	if r.Ticket != "" {
		fmt.Fprintln(env.Stdout, "ticket", r.Ticket)
	}
}
