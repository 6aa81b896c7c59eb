package serve

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/serve/deferq"
)

// deferredAdmin implements [admin.Deferred].
type deferredAdmin struct{ *deferred }

// open returns the queue, or why there is none.
func (d deferredAdmin) open() (*deferq.Queue, error) {
	if q := d.queue.Load(); q != nil {
		return q, nil
	}
	return nil, &admin.Problem{Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable, Detail: d.why().Error() + "."}
}

// List implements [admin.Deferred].
func (d deferredAdmin) List(ctx context.Context, q admin.DeferredQuestion, n int) (admin.DeferredList, error) {
	list := admin.DeferredList{Requests: []admin.DeferredRequest{}}
	queue, err := d.open()
	if err != nil {
		return list, err
	}
	s, err := queue.Store().Stats(ctx)
	if err != nil {
		return list, err
	}
	list.Waiting, list.Done, list.Dead, list.Bytes, list.Max, list.Draining = s.Waiting, s.Done, s.Dead, s.Bytes, s.Max, queue.Draining()
	if s.Err != nil {
		list.Problem = s.Err.Error()
	}
	err = each(ctx, queue.Store(), q, func(e *deferq.Entry) bool {
		if len(list.Requests) == n {
			list.More = true
			return false
		}
		list.Requests = append(list.Requests, shownDeferred(ctx, queue.Store(), e))
		return true
	})
	return list, err
}

// each calls f for the entries that q is about, until f returns false.
func each(ctx context.Context, s deferq.Store, q admin.DeferredQuestion, f func(*deferq.Entry) bool) error {
	fits := func(e *deferq.Entry) bool {
		return (q.Rule == "" || e.Line.Rule == q.Rule) && (q.State == "" || string(e.State) == q.State)
	}
	if q.ID != "" {
		e, _, err := s.Get(ctx, q.ID)
		if errors.Is(err, deferq.ErrNone) {
			return nil
		}
		if err == nil && fits(e) {
			f(e)
		}
		return err
	}
	return s.List(ctx, func(e *deferq.Entry) bool { return !fits(e) || f(e) })
}

// shownDeferred returns an entry as the admin API shows it. Only one that has not ended has a position.
func shownDeferred(ctx context.Context, s deferq.Store, e *deferq.Entry) admin.DeferredRequest {
	r := admin.DeferredRequest{
		ID: e.ID, Rule: e.Line.Rule, Scope: e.Line.Scope, Key: e.Line.Key, Method: e.Request.Method, Host: e.Request.Host,
		State: string(e.State), Attempts: e.Attempts, Accepted: e.Accepted.UTC(), Reason: e.Reason,
	}
	if at, err := url.ParseRequestURI(e.Request.URL); err == nil {
		r.Path = at.Path
	}
	if e.Result != nil {
		r.Status = e.Result.Status
	}
	if e.State != deferq.Waiting && e.State != deferq.Trying {
		r.Ended = e.Ended.UTC()
		return r
	}
	r.Expires = e.Expires.UTC()
	if e.Next.After(time.Now()) {
		r.Next = e.Next.UTC()
	}
	if _, before, err := s.Get(ctx, e.ID); err == nil {
		r.Position = before + 1
	}
	return r
}

// change calls f with the IDs of all entries that q is about, and returns how many it has changed.
func (d deferredAdmin) change(ctx context.Context, q admin.DeferredQuestion, f func(s deferq.Store, id string) error) (int, error) {
	queue, err := d.open()
	if err != nil {
		return 0, err
	}
	var ids []string // there may be more entries, with their results, than memory holds
	if err := each(ctx, queue.Store(), q, func(e *deferq.Entry) bool { ids = append(ids, e.ID); return true }); err != nil {
		return 0, err
	}
	if q.ID != "" && len(ids) == 0 {
		return 0, notDeferred(http.StatusNotFound, deferq.ErrNone)
	}
	changed := 0
	for _, id := range ids {
		switch err := f(queue.Store(), id); {
		case err == nil:
			changed++
		case q.ID != "":
			return 0, notDeferred(http.StatusConflict, err)
		case errors.Is(err, deferq.ErrNone), errors.Is(err, deferq.ErrBusy), errors.Is(err, deferq.ErrEnded), errors.Is(err, deferq.ErrUnreadable):
		default:
			return changed, err
		}
	}
	return changed, nil
}

// notDeferred returns the answer with that status for a change that failed with err.
func notDeferred(status int, err error) error {
	return &admin.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: "This cannot be done: " + err.Error() + "."}
}

// Retry implements [admin.Deferred].
func (d deferredAdmin) Retry(ctx context.Context, q admin.DeferredQuestion) (int, error) {
	return d.change(ctx, q, func(s deferq.Store, id string) error { return s.Retry(ctx, id, time.Now()) })
}

// Drop implements [admin.Deferred].
func (d deferredAdmin) Drop(ctx context.Context, q admin.DeferredQuestion, reason string) (int, error) {
	return d.change(ctx, q, func(s deferq.Store, id string) error {
		return s.Drop(ctx, id, "an operator dropped it: "+reason)
	})
}

// Drain implements [admin.Deferred].
func (d deferredAdmin) Drain(on bool) error {
	q, err := d.open()
	if err == nil {
		q.Drain(on)
	}
	return err
}
