package rlqs

import (
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// outbox has the updates that are still to be sent to a proxy, the latest of each bucket.
type outbox struct {
	mu      sync.Mutex
	updates map[string]update // by the name of the bucket id
	order   []string
	sent    map[string]time.Duration // by bucket: when the last token bucket that was sent was decided
	wake    chan struct{}

	refused []*pb.RateLimitQuotaResponse_BucketAction // for buckets above a bound
	bytes   int                                       // of their ids
	all     *waiting
	closed  bool
}

// waiting is what all outboxes of a server hold.
type waiting struct {
	updates atomic.Int64
	refused atomic.Int64 // bytes of ids
}

// Bounds of what waits for proxies that do not read.
const (
	maxWaiting    = 2 * MaxSubscriptions // updates of all streams
	maxRefused    = 256 << 10            // bytes of the ids of refused buckets, of a stream: what one message of reports can bring
	maxAllRefused = 32 << 20             // of all streams
)

// reserve adds n to what is held, unless that becomes more than most.
func reserve(held *atomic.Int64, n, most int64) bool {
	if held.Add(n) > most {
		held.Add(-n)
		return false
	}
	return true
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

func newOutbox(all *waiting) *outbox {
	return &outbox{updates: make(map[string]update), sent: make(map[string]time.Duration), wake: make(chan struct{}, 1), all: all}
}

// close drops everything. Nothing is added after it.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.updates.Add(-int64(len(o.updates)))
	o.all.refused.Add(-int64(o.bytes))
	o.closed, o.updates, o.order, o.sent, o.refused, o.bytes = true, nil, nil, nil, nil, 0
}

// put adds an update of a bucket in place of the one that waits, or drops it if too many wait.
func (o *outbox) put(name string, u update) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.updates[name]; !ok {
		if o.closed || len(o.updates) >= 2*MaxBuckets || !reserve(&o.all.updates, 1, maxWaiting) {
			return
		}
		o.order = append(o.order, name)
	}
	o.updates[name] = u
	o.ring()
}

// refuse adds an action for a bucket above a bound, or drops it if too many wait.
func (o *outbox) refuse(action *pb.RateLimitQuotaResponse_BucketAction) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := proto.Size(action.GetBucketId())
	if o.closed || o.bytes > 0 && o.bytes+size > maxRefused || !reserve(&o.all.refused, int64(size), maxAllRefused) {
		return
	}
	o.refused, o.bytes = append(o.refused, action), o.bytes+size
	o.ring()
}

// ring wakes whoever sends.
func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// forget forgets what was sent about a bucket that has no part of its former limit any more.
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
	if m = o.takeRefused(); m != nil { // before assignments of the same buckets, which were decided later
		return m, nil
	}
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
	o.all.updates.Add(-int64(n))
	return m, lost
}

// takeRefused returns the next message about buckets above a bound, nil if there is none.
func (o *outbox) takeRefused() (m *pb.RateLimitQuotaResponse) {
	size, n, ids := 0, 0, 0
	for _, action := range o.refused {
		if size += proto.Size(action); n > 0 && (n >= maxActions || size > maxBytes) {
			break
		}
		n++
		ids += proto.Size(action.GetBucketId())
	}
	if n > 0 {
		m = &pb.RateLimitQuotaResponse{BucketAction: o.refused[:n:n]}
		o.refused, o.bytes = o.refused[n:], o.bytes-ids
		o.all.refused.Add(-int64(ids))
	}
	return m
}
