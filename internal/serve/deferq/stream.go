package deferq

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Streams are streams of the user's own workers.
type Streams interface {
	// Append appends an entry to a stream, which has at most so many, 0 for any number. When it returns
	// without an error, the entry outlasts the server; ErrFull if there is no place.
	Append(ctx context.Context, stream string, places int64, e *Entry) error
}

// StreamVersion is that of records in streams: workers leave records of others alone.
const StreamVersion = 1

// streamRecord returns the fields of an entry in a stream, each with its value. docs/defer.md describes them.
func streamRecord(e *Entry) ([]string, error) {
	header, err := json.Marshal(e.Request.Header)
	if err != nil {
		return nil, err
	}
	key := e.Request.Header.Get("Idempotency-Key")
	if key == "" {
		key = idempotencyKey(e.ID)
	}
	return []string{
		"v", strconv.Itoa(StreamVersion), "id", e.ID, "rule", e.Line.Rule, "key", e.Line.Key,
		"accepted", e.Accepted.UTC().Format(time.RFC3339Nano), "idempotency_key", key,
		"method", e.Request.Method, "url", e.Request.URL, "host", e.Request.Host, "peer", e.Request.Peer,
		"header", string(header), "body", string(e.Request.Body),
	}, nil
}

// Append implements Streams. If Redis does not answer, nobody knows whether the entry is in the stream.
func (r *Redis) Append(ctx context.Context, stream string, places int64, e *Entry) error {
	if err := r.fit(ctx); err != nil {
		return err
	}
	fields, err := streamRecord(e)
	if err != nil {
		return err
	}
	got, err := r.run(ctx, "", "append to the stream "+stream, scripts.append, []string{stream}, append([]string{strconv.FormatInt(places, 10)}, fields...)...)
	if err == nil && got[0] == "" {
		return ErrFull
	}
	return err
}
