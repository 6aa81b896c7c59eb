package ruletest

import (
	"strings"
	"testing"
)

// A step with an answer reports what the client is told; others report nothing.
func TestAnswers(t *testing.T) {
	const src = `version: 1
headers: { dialect: x }
rules:
  - { name: api, match: /api/, per: ip, limits: 1/minute }
  - { name: own, match: /own/, per: ip, limits: 1/hour, respond: { status: 402, body: "later: {retry_after}", type: text/x-own } }
  - { name: no, match: /no/, deny: true, respond: { message: "not here" } }
`
	r := run(t, src, `
      - { request: GET /api/x, want: ok, answer: 200 }
      - { request: GET /api/x, want: refused }
      - { request: GET /api/x, want: refused, answer: 429 }
      - { request: HEAD /own/, times: 2, want: [ok, refused], answer: 402 }
      - { request: GET /own/, headers: { Accept: text/html }, want: refused, answer: 402 }
      - { request: POST example.com/no/?a=b, want: denied, answer: 403 }
      - { request: POST /no/X/Y, headers: { Content-Type: application/grpc+proto }, want: denied, answer: 200 }
      - { request: GET /free, want: ok, answer: 200 }
`)
	if r.Failed() != 0 {
		t.Fatalf("%+v", r.Cases)
	}
	var got strings.Builder
	for i := range r.Answers {
		a := &r.Answers[i]
		got.WriteString(a.Case + ", " + a.Request + ", " + a.Outcome + " by " + a.Rule + "\n" + a.String() + "\n")
	}
	const want = `one, GET /api/x, ok by api
HTTP/1.1 200 OK
X-Ratelimit-Limit: 1
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 60

one, GET /api/x, refused by api
HTTP/1.1 429 Too Many Requests
Content-Type: application/problem+json
Retry-After: 60
X-Content-Type-Options: nosniff
X-Ratelimit-Limit: 1
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 60
X-Ratelimit-Retry-After: 60

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"The quota of the policy api is used up; try again in 60 s.","violated-policies":["api"]}

one, HEAD /own/, refused by own
HTTP/1.1 402 Payment Required
Cache-Control: no-store
Content-Type: text/x-own
Retry-After: 3600
X-Content-Type-Options: nosniff
X-Ratelimit-Limit: 1
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 3600
X-Ratelimit-Retry-After: 3600

one, GET /own/, refused by own
HTTP/1.1 402 Payment Required
Cache-Control: no-store
Content-Type: text/x-own
Retry-After: 3600
X-Content-Type-Options: nosniff
X-Ratelimit-Limit: 1
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 3600
X-Ratelimit-Retry-After: 3600

later: 3600

one, POST example.com/no/?a=b, denied by no
HTTP/1.1 403 Forbidden
Cache-Control: no-store
Content-Type: application/problem+json
X-Content-Type-Options: nosniff

{"type":"about:blank","title":"Forbidden","status":403,"detail":"not here"}

one, POST /no/X/Y, denied by no
HTTP/2 200
Content-Type: application/grpc
Grpc-Message: not here
Grpc-Retry-Pushback-Ms: -1
Grpc-Status: 7

one, GET /free, ok by ` + `
HTTP/1.1 200 OK

`
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}
