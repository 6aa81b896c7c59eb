package deferq

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Streams are the streams of the user's own workers.
type Streams interface {
	// Append appends an entry to a stream of at most places entries; 0 means any number. When it
	// returns without an error, the entry survives a crash of the server; ErrFull if there is no
	// room.
	Append(ctx context.Context, stream string, places int64, e *Entry) error
}

// StreamVersion is the version of records in streams: workers skip records of other versions.
const StreamVersion = 1

// streamRecord returns the fields of an entry in a stream, names and values in turn. docs/defer.md
// describes them.
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

// Append implements Streams. If Redis does not answer, it is unknown whether the entry is in the
// stream. A stream that has just failed is not asked again for a moment.
func (r *Redis) Append(ctx context.Context, stream string, places int64, e *Entry) error {
	if err := r.fit(ctx); err != nil {
		return err
	}
	a := aboutStream(stream)
	if err := r.isAwayAbout(a); err != nil {
		return err
	}
	fields, err := streamRecord(e)
	if err != nil {
		return err
	}
	got, err := r.runAbout(ctx, a, "append to the stream "+stream, scripts.append, []string{stream}, append([]string{strconv.FormatInt(places, 10)}, fields...)...)
	if err == nil && got[0] == "" {
		return ErrFull
	}
	return err
}
