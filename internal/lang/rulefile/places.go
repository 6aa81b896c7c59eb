package rulefile

import "slices"

// places are all maps of the language.
var places = []*place{
	&rootPlace, &defaultsPlace, &rulePlace, &branchPlace, &exemptPlace, &classPlace, &tierPlace, &listPlace, &identityPlace, &tierUsePlace, &limitsPlace, &tablePlace, &quotaPlace, &concurrencyPlace,
	&consistencyPlace, &overPlace, &elasticPlace, &shedPlace, &costPlace, &reservePlace, &queuePlace, &deferPlace, &countPlace, &respondPlace, &headersPlace,
}

var (
	rootPlace = place{
		name: "a rule file",
		words: []string{
			"version", "include", "identify", "lists", "tiers", "classes", "exempt", "defaults", "rules",
			"shed", "respond", "headers", "instances", "replace", "waive",
		},
		example: "version: 1",
		advice: map[string]advice{
			"on_store_failure": {"", "write it for all rules as `defaults: { on_store_failure: local }`, or in a rule"},
			"on_full":          {"", "write it for all rules as `defaults: { on_full: evict }`, or in a rule"},
			"consistency":      {"", "write it for all rules as `defaults: { consistency: strict }`, or in a rule"},
			"on_partition":     {"", "write it for all rules as `defaults: { on_partition: share }`, or in a rule"},
			"limits":           {"rules", "limits belong to a rule: `rules: [{ name: api, per: ip, limits: 100/minute }]`"},
			"name":             {"rules", "a rule is an item of `rules:`, as in `- { name: api, per: ip, limits: 100/minute }`"},
			"whitelist":        {"", "write `exempt:` for callers that are not limited, `lists:` for lists of values"},
			"allow":            {"", "write `exempt:` for callers that are not limited"},
			"priorities":       {"classes", "did you mean `classes`? they are a list, the most important first"},
			"set_aside":        {"", "write it in a rule: `set_aside: { critical: 20% }`"},
		},
	}
	defaultsPlace = place{
		name:    "`defaults`",
		words:   []string{"on_store_failure", "on_full", "consistency", "on_partition"},
		example: "defaults: { on_store_failure: local }",
		advice: map[string]advice{
			"respond":   {"", "write `respond:` at the top of the file, beside `defaults:`"},
			"headers":   {"", "write `headers:` at the top of the file, beside `defaults:`"},
			"instances": {"", "write `instances:` at the top of the file, beside `defaults:`"},
		},
	}
	rulePlace = place{
		name: "a rule",
		words: []string{
			"name", "match", "per", "missing", "when", "unless", "tier", "limits", "quota", "concurrency", "over", "cost",
			"queue", "set_aside", "shed", "for", "instead_of", "count", "block", "defer", "deny", "respond", "mode", "enforce", "candidate",
			"on_store_failure", "on_full", "consistency", "on_partition", "replace", "waive",
		},
		example: "- { name: api, match: /api/, per: ip, limits: 100/minute }",
		advice:  ruleAdvice,
	}
	branchPlace = place{
		name:    "a branch of `for`",
		words:   []string{"when", "unless", "limits", "quota", "concurrency", "over", "cost", "queue", "until", "reason"},
		example: "- { when: { role: premium }, limits: 1000/minute }",
		advice: map[string]advice{
			"match": {"", "a branch is chosen by who is asking; for another path write a rule with `instead_of`"},
			"per":   {"", "a branch keeps the counters of its rule; to count by something else write another rule"},
			"deny":  {"limits", "write a rule of its own: `- { name: no-guests, when: { role: guest }, deny: true }`"},
			"if":    {"when", "did you mean `when`?"},
			"rate":  {"limits", "write `limits: 1000/minute`"},
			"name":  {"", "a branch has no name; say why it is there with `reason:`"},
		},
	}
	exemptPlace = place{
		name:    "an item of `exempt`",
		words:   []string{"match", "when", "unless"},
		example: "- { match: /healthz }",
		advice: map[string]advice{
			"path": {"match", "write `match: /healthz`"},
			"ip":   {"when", "write `when: { ip: 10.0.0.0/8 }`"},
			"user": {"when", "write `when: { user: NAME }`"},
		},
	}
	classPlace = place{
		name:    "a class",
		words:   []string{"name", "match", "when", "unless"},
		example: "- { name: critical, match: POST /v1/charges }",
		advice: map[string]advice{
			"path":      {"match", "write `match: /v1/charges`"},
			"user":      {"when", "write `when: { user: NAME }`"},
			"set_aside": {"", "write it in a rule: `set_aside: { critical: 20% }`"},
			"priority":  {"", "the first class is the most important: their order says it"},
			"weight":    {"", "the first class is the most important: their order says it"},
		},
	}
	tierPlace = place{
		name:    "a tier",
		words:   slices.Concat(termWords, []string{"replace"}),
		example: "tiers: { free: { limits: 60/minute } }",
		advice: map[string]advice{
			"rate": {"limits", "write `limits: 1000/minute`"},
			"when": {"", "a rule chooses the tier: `tier: { from: plan, else: free }`"},
			"per":  {"", "a rule says who is counted, and chooses the tier: `tier: { from: plan, else: free }`"},
		},
	}
	listPlace = place{
		name:    "a list",
		words:   []string{"values", "file", "replace"},
		example: "lists: { banned: { file: banned.txt, replace: true } }",
		advice: map[string]advice{
			"items": {"values", "did you mean `values`?"},
			"from":  {"file", "did you mean `file`?"},
		},
	}
	identityPlace = place{
		name:    "an identity",
		words:   []string{"from", "replace"},
		example: "identify: { user: { from: jwt.sub, replace: true } }",
		advice:  map[string]advice{"source": {"from", "did you mean `from`?"}},
	}
	tierUsePlace = place{
		name:    "`tier`",
		words:   []string{"from", "else"},
		example: "tier: { from: plan, else: free }",
		advice: map[string]advice{
			"by":      {"from", "did you mean `from`?"},
			"default": {"else", "did you mean `else`?"},
		},
	}
	tablePlace = place{
		name:    "a table of limits",
		words:   []string{"by", "rows", "else"},
		example: "limits: { by: model, rows: { large: 10/minute }, else: 5/minute }",
		advice: map[string]advice{
			"default": {"else", "did you mean `else`?"},
			"columns": {"by", "did you mean `by`?"},
			"rate":    {"", "write a rate in each row: `rows: { large: 10/minute }`"},
		},
	}
	limitsPlace = place{
		name: "`limits`",
		words: []string{
			"rate", "burst", "algorithm", "refill", "parts", "ceiling", "count_rejected",
			"from", "per", "max", "else",
		},
		example: "limits: { rate: 100/minute, burst: 200, algorithm: token_bucket }",
		advice: map[string]advice{
			"limit":    {"rate", "write `rate: 100/minute`"},
			"requests": {"rate", "write `rate: 100/minute`"},
			"events":   {"rate", "write `rate: 100/minute`"},
			"period":   {"", "the period is part of the rate: `rate: 100/minute`"},
			"window":   {"", "the period is part of the rate: `rate: 100/minute`"},
			"unit":     {"", "the period is part of the rate: `rate: 100/minute`"},
			"default":  {"else", "did you mean `else`?"},
		},
	}
	quotaPlace = place{
		name:    "`quota`",
		words:   []string{"amount", "zone", "anchor", "status"},
		example: "quota: { amount: 1000000/month, zone: Asia/Seoul }",
		advice: map[string]advice{
			"rate":     {"amount", "write `amount: 1000/month`"},
			"limit":    {"amount", "write `amount: 1000/month`"},
			"timezone": {"zone", "did you mean `zone`?"},
		},
	}
	concurrencyPlace = place{
		name:    "`concurrency`",
		words:   []string{"slots", "lease"},
		example: "concurrency: { slots: 20, lease: 30s }",
		advice: map[string]advice{
			"max":     {"slots", "did you mean `slots`?"},
			"limit":   {"slots", "did you mean `slots`?"},
			"timeout": {"lease", "did you mean `lease`? a slot that is not given back is free again after it"},
		},
	}
	overPlace = place{
		name:    "`over`",
		words:   []string{"soft", "max_time", "elastic"},
		example: "over: { soft: 10% }",
		advice: map[string]advice{
			"hard": {"", "write `over: hard`, or nothing: hard is the default"},
			"time": {"max_time", "did you mean `max_time`?"},
			"for":  {"max_time", "did you mean `max_time`?"},
		},
	}
	elasticPlace = place{
		name:    "`elastic`",
		words:   []string{"while", "up_to"},
		example: "over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } }",
		advice: map[string]advice{
			"when": {"while", "did you mean `while`?"},
			"max":  {"up_to", "did you mean `up_to`?"},
		},
	}
	shedPlace = place{
		name:    "`shed`",
		words:   []string{"while", "never", "mode"},
		example: "shed: { while: [cpu > 85%, inflight > 2000], never: critical }",
		advice: map[string]advice{
			"when":   {"while", "did you mean `while`?"},
			"above":  {"while", "write `while: cpu > 85%`"},
			"except": {"never", "did you mean `never`?"},
			"unless": {"never", "write the class that is never shed: `never: critical`"},
		},
	}
	costPlace = place{
		name:    "`cost`",
		words:   []string{"reserve", "else", "min", "max", "settle"},
		renamed: map[string]string{"default": "else"},
		example: "cost: { reserve: body.max_tokens, else: 1000, max: 32000 }",
		advice: map[string]advice{
			"from": {"reserve", "did you mean `reserve`?"},
			"sum":  {"reserve", "write `reserve: { sum: [body.prompt_tokens, body.max_tokens] }`"},
		},
	}
	reservePlace = place{
		name:    "`reserve`",
		words:   []string{"sum"},
		example: "reserve: { sum: [body.prompt_tokens, body.max_tokens] }",
		advice: map[string]advice{
			"first": {"sum", "a plain list takes the first that is there: `reserve: [body.max_completion_tokens, body.max_tokens]`"},
			"add":   {"sum", "did you mean `sum`?"},
		},
	}
	queuePlace = place{
		name:    "`queue`",
		words:   []string{"places", "max_wait", "drop"},
		example: "queue: { places: 100, max_wait: 2s }",
		advice: map[string]advice{
			"on_full": {"drop", "write `drop: newest` or `drop: oldest`"},
			"size":    {"places", "did you mean `places`?"},
			"length":  {"places", "did you mean `places`?"},
			"timeout": {"max_wait", "did you mean `max_wait`?"},
			"wait":    {"max_wait", "did you mean `max_wait`?"},
		},
	}
	deferPlace = place{
		name:    "`defer`",
		words:   []string{"keep", "places", "per_key", "max_body", "to"},
		example: "defer: { keep: 24h, places: 100000 }",
		advice: map[string]advice{
			"size":   {"places", "did you mean `places`?"},
			"ttl":    {"keep", "did you mean `keep`?"},
			"stream": {"to", "write `to: stream orders`"},
			"body":   {"max_body", "did you mean `max_body`?"},
		},
	}
	countPlace = place{
		name:    "`count`",
		words:   []string{"status"},
		example: "count: { status: [401, 403] }",
	}
	respondPlace = place{
		name:    "`respond`",
		words:   []string{"status", "message", "body", "type"},
		example: "respond: { status: 403, message: \"for subscribers only\" }",
		advice: map[string]advice{
			"content_type": {"type", "did you mean `type`?"},
			"code":         {"status", "did you mean `status`?"},
		},
	}
	headersPlace = place{
		name:    "`headers`",
		words:   []string{"dialect", "reset", "retry_jitter"},
		example: "headers: { dialect: [draft11, x] }",
		advice: map[string]advice{
			"dialects": {"dialect", "did you mean `dialect`? it takes one or a list"},
			"jitter":   {"retry_jitter", "did you mean `retry_jitter`?"},
		},
	}
)

// ruleAdvice is the advice of rulePlace. It is long because other limiters have other words.
var ruleAdvice = map[string]advice{
	"rate":        {"limits", "write `limits: 100/minute`"},
	"key":         {"per", "write `per: user`, with `user` said in `identify`"},
	"by":          {"per", "write `per: user`, with `user` said in `identify`"},
	"path":        {"match", "write `match: /api/`"},
	"url":         {"match", "write `match: /api/`"},
	"route":       {"match", "write `match: /api/`"},
	"method":      {"match", "the method is part of the pattern: `match: POST /login`"},
	"methods":     {"match", "the method is part of the pattern: `match: [POST /login, PUT /login]`"},
	"host":        {"match", "the host is part of the pattern: `match: api.example.com/`"},
	"if":          {"when", "did you mean `when`?"},
	"burst":       {"", "burst belongs to the limit: `limits: { rate: 100/minute, burst: 200, algorithm: token_bucket }`"},
	"algorithm":   {"", "the algorithm belongs to the limit: `limits: { rate: 100/minute, algorithm: token_bucket }`"},
	"period":      {"", "the period is part of the rate: `limits: 100/minute`"},
	"window":      {"", "the period is part of the rate: `limits: 100/minute`"},
	"soft":        {"over", "write `over: { soft: 10% }`"},
	"elastic":     {"over", "write `over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } }`"},
	"shadow":      {"mode", "write `mode: shadow`"},
	"dry_run":     {"mode", "write `mode: shadow`"},
	"enabled":     {"mode", "a rule is in force unless it says `mode: disabled`"},
	"disabled":    {"mode", "write `mode: disabled`"},
	"slots":       {"concurrency", "write `concurrency: { slots: 20, lease: 30s }`"},
	"status":      {"", "write `respond: { status: 403 }` for the answer, `count: { status: 401 }` for what is counted"},
	"message":     {"respond", "write `respond: { message: \"…\" }`"},
	"allow":       {"", "name callers that are not limited at the top of the file: `exempt: [{ match: /healthz }]`"},
	"exempt":      {"unless", "write `unless: { role: admin }`, or `exempt:` at the top of the file"},
	"until":       {"", "`until` is a field of a branch: `for: [{ when: { user: acme }, limits: 500/minute, until: 2030-01-01T00:00:00Z }]`"},
	"description": {"", "write a comment: `# why this rule is here`"},
	"comment":     {"", "write a comment: `# why this rule is here`"},
	"reason":      {"", "write a comment: `# why this rule is here`"},
	"ignore":      {"waive", "write `waive: { CHECK: \"why\" }`"},
	"nolint":      {"waive", "write `waive: { CHECK: \"why\" }`"},
	"suppress":    {"waive", "write `waive: { CHECK: \"why\" }`"},
	"id":          {"name", "did you mean `name`?"},
	"replaces":    {"instead_of", "write `instead_of: NAME` for another rule, or `replace: true` to take the place of this name in an earlier layer"},
	"tiers":       {"tier", "say `tiers:` at the top of the file, and `tier: { from: plan, else: free }` in the rule"},
	"class":       {"", "a request has its class by `classes:` at the top of the file; a rule says what is kept for it: `set_aside: { critical: 20% }`"},
	"priority":    {"", "order requests by `classes:` at the top of the file, and keep a share of the limit for some: `set_aside: { critical: 20% }`"},
	"reserved":    {"set_aside", "write `set_aside: { critical: 20% }`"},
	"plan":        {"tier", "write `tier: { from: plan, else: free }`, with `tiers:` at the top of the file"},
}
