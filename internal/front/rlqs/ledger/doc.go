// Package ledger divides one token bucket among nodes that each run a bucket of their own, so
// that all nodes together never admit more than the one bucket would. It decides which node gets
// which assignment, and when. It knows no clock, no connection and no store: every event carries
// its time, as the time since an arbitrary start.
//
// # The promise
//
// An assignment is a [Strategy]: a token bucket of Max tokens that starts full and is refilled
// with Fill tokens per Interval, continuously. It expires at the node after TTL. The same strategy
// sent again before that extends it. A different strategy, or the same one after the expiry, is a
// full bucket again. Let D = TTL + Delivery, where Delivery is the longest time that a message may
// take. An assignment sent at t is then in use until t + D at most. It counts as outstanding for
// that long, whatever is sent later: nobody knows whether the later message arrives.
//
// In every interval from s to u, all nodes together admit at most burst + rate·(u-s). There are
// two ways to pay for that. An epoch is the time in which a node keeps one strategy. With m tokens
// and the rate r it admits at most m + r·t in any time t.
//
// Counters of this process. The ledger has a fund of x tokens. It grows by rate - Σr, where Σr is
// the sum of the outstanding rates, and is capped at burst - Σm, the outstanding tokens. A new
// epoch costs its m. No epoch begins unless x and rate - Σr suffice. So Σr ≤ rate and x + Σm ≤
// burst at all times, and:
//
//	epochs sent until s, still in use:   Σm(s) tokens
//	epochs sent from s to u, paid by x:  at most x(s) + ∫(rate - Σr)
//	all rates from s to u:               at most ∫Σr
//	sum:                                 at most x(s) + Σm(s) + rate·(u-s)
//
// A node never uses two epochs at the same time, because its messages arrive in order: Σr counts
// the higher rate of the two, Σm counts both.
//
// Counters of a fleet ([Ahead]). Nobody knows what other instances have assigned, so every token is
// taken from the shared bucket before it can be used. A new epoch takes its m, and every assignment
// takes the rate r for each instant of the next D that is not paid for yet. So the rate of an
// instant is taken at most D before it. Let reach be a time with m ≤ r·reach, and F =
// rate·(D+reach). Every take must leave F tokens in the bucket, so takes in any time t sum up to at
// most burst - F + rate·t. A node admits from s to u no more than was taken for it from s-D-reach
// to u:
//
//	epochs sent after s-D-reach:     their m were taken since then
//	an earlier epoch, at most one:   its r was taken since then for the time from s-reach to s,
//	                                 which covers its m
//	rates from s to u:               were taken since then
//
// The sum over all nodes is at most burst - F + rate·(u-s+D+reach) = burst + rate·(u-s). Tokens are
// whole numbers, so one is left out of each m. With reach = burst/(2·rate) - D, F is half of the
// burst, and an epoch of the whole rate takes up to the other half. So burst must exceed 2·rate·D.
// A node with a low rate pays for as much as its m needs, (m+1)/reach.
//
// Both proofs hold for nodes that admit nothing without an assignment and nothing after its expiry,
// that refill their buckets continuously, not a whole Fill at once, and as long as no message takes
// longer than Delivery.
//
// Start with [New].
package ledger
