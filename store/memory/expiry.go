package memory

import "tidegate.dev/tidegate"

// expiry is when a reservation expires.
type expiry struct {
	at int64
	id tidegate.Handle
}

// expiries is a [heap.Interface].
type expiries []expiry

func (q expiries) Len() int           { return len(q) }
func (q expiries) Less(i, j int) bool { return q[i].at < q[j].at }
func (q expiries) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *expiries) Push(e any)        { *q = append(*q, e.(expiry)) }

func (q *expiries) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}
