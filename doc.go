// Package tidegate limits how much may pass per key and time.
//
// Start with [New]: it joins a [Store], where counters live, with one or more
// limits, and returns a [Limiter]. Most callers need only [Limiter.Allow]:
//
//	lim := tidegate.New(memory.New(), tidegate.PerMinute(100))
//	if d := lim.Allow(ctx, userID); !d.OK {
//		return fmt.Errorf("too many requests, try again in %s", d.RetryAfter)
//	}
//
// [Limiter.Wait] sleeps until the call may go ahead, [Limiter.Reserve] takes an
// estimate now and settles the true cost later, [Limiter.Acquire] holds one of
// a number of slots. A [Gate] does the same for requests that are matched against
// a set of rules.
//
// This package has the vocabulary that the rest of Tidegate shares and imports
// only the standard library. The arithmetic is in internal/algo, the state in a
// Store, the rules of HTTP in httplimit.
package tidegate
