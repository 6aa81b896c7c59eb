// Package rlqs serves Envoy's rate limit quota service, version 3: StreamRateLimitQuotas. A proxy
// does not ask about every request. It reports its usage now and then and gets assignments: token
// buckets with a time to live, by which it decides itself.
//
//	report → stream → subscription: domain and bucket id → the limit of a rule, and a key
//	       → account: a ledger divides the limit among all subscribers of that key
//	       → assignment: DENY_ALL, ALLOW_ALL or a token bucket → outbox → stream
//
// A stream is a node of the ledger: after a reconnect it is a new one. Package ledger decides how a
// limit is divided, and proves the promise. This package adds gRPC, rules, the store and time.
//
// Start with [New].
package rlqs
