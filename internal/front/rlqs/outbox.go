package rlqs

import (
	"sync"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// outbox has the updates that a proxy has not been sent, the latest of each bucket.
type outbox struct {
	mu      sync.Mutex
	updates map[string]update // by the name of the bucket id
	order   []string
	sent    map[string]time.Duration // when the last token bucket of each was decided
	wake    chan struct{}
}

// update is an action for a bucket.
type update struct {
	action *pb.RateLimitQuotaResponse_BucketAction
	kind   kind
	at     time.Duration // when it was decided
}

// kind says when an update may be sent.
type kind uint8

const (
	always    kind = iota // at any time
	soon                  // shortly after it was decided
	bucket                // the same; it is a full token bucket
	extension             // the same, and before the last one expires
)

func newOutbox() *outbox {
	return &outbox{updates: make(map[string]update), sent: make(map[string]time.Duration), wake: make(chan struct{}, 1)}
}

// put adds an update of a bucket, unless there are too many.
func (o *outbox) put(name string, u update) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.updates[name]; !ok {
		if len(o.updates) >= 2*MaxBuckets {
			return
		}
		o.order = append(o.order, name)
	}
	o.updates[name] = u
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// forget drops what is kept about a bucket that has no part of a limit any more.
func (o *outbox) forget(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sent, name)
}

// Bounds of a message.
const (
	maxActions = 256
	maxBytes   = 128 << 10
)

// take returns the next message, nil if there is none, and the names of buckets whose updates were
// dropped, because the proxy read too slowly.
func (o *outbox) take(now time.Duration, t ledger.Times) (m *pb.RateLimitQuotaResponse, lost []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, n := 0, 0
	for _, name := range o.order {
		u := o.updates[name]
		if size += 2*len(name) + 64; m != nil && (len(m.BucketAction) >= maxActions || size > maxBytes) {
			break
		}
		n++
		delete(o.updates, name)
		late := u.kind != always && now-u.at > t.Delivery/2
		if last, ok := o.sent[name]; late || u.kind == extension && (!ok || u.at-last >= t.Latest()) {
			lost = append(lost, name)
			continue
		}
		if u.kind >= bucket {
			o.sent[name] = u.at
		}
		if m == nil {
			m = new(pb.RateLimitQuotaResponse)
		}
		m.BucketAction = append(m.BucketAction, u.action)
	}
	o.order = o.order[n:]
	return m, lost
}
