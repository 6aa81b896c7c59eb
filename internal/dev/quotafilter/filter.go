// Package quotafilter is the client side of Envoy's filter rate_limit_quota, for tests: a bucket
// of it with what it is told, and the requests that it lets pass. It is made after
// source/extensions/filters/http/rate_limit_quota of Envoy and the comments of the protocol, except
// that times to live are taken as they are, where Envoy reads whole seconds.
//
// Its configuration is that of deploy/envoy: without an assignment, and after the end of one,
// everything is denied.
package quotafilter

import "time"

// TokenBucket is a strategy, as the protocol has it. The zero value is DENY_ALL.
type TokenBucket struct {
	MaxTokens, TokensPerFill uint32
	FillInterval             time.Duration
}

// Bucket is the bucket of one id in one Envoy. Times are those since some beginning.
type Bucket struct {
	strategy TokenBucket
	until    time.Duration // of the assignment; 0 means there is none
	tokens   float64
	at       time.Duration // when there were so many tokens

	allowed, denied uint64 // since the last report
}

// Assign is told an assignment. Unless it is what the bucket has, and has not ended, the bucket
// is full.
func (b *Bucket) Assign(now time.Duration, s TokenBucket, ttl time.Duration) {
	if s != b.strategy || now >= b.until {
		b.strategy, b.tokens, b.at = s, float64(s.MaxTokens), now
	}
	b.until = now + ttl
}

// Admit reports whether a request passes, and counts it.
func (b *Bucket) Admit(now time.Duration) bool {
	if now >= b.until || b.strategy == (TokenBucket{}) {
		b.denied++
		return false
	}
	perSecond := float64(b.strategy.TokensPerFill) / b.strategy.FillInterval.Seconds()
	b.tokens = min(b.tokens+perSecond*(now-b.at).Seconds(), float64(b.strategy.MaxTokens))
	b.at = now
	if b.tokens < 1 {
		b.denied++
		return false
	}
	b.tokens--
	b.allowed++
	return true
}

// Report returns what was counted since the last one.
func (b *Bucket) Report() (allowed, denied uint64) {
	allowed, denied = b.allowed, b.denied
	b.allowed, b.denied = 0, 0
	return allowed, denied
}
