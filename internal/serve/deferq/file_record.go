package deferq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Buckets of the file. Keys are sequence numbers, in the order of acceptance. A dead entry gets a new
// number when it is revived.
var (
	metaBucket  = []byte("meta")
	waitBucket  = []byte("waiting") // number → record
	bodyBucket  = []byte("bodies")  // number → body of the request
	endedBucket = []byte("ended")   // number → record
	versionKey  = []byte("version")

	buckets = [][]byte{metaBucket, waitBucket, bodyBucket, endedBucket}
)

// read returns the current entry of an item, with the body of its request if body is set; ErrNone if
// it was removed.
func (f *File) read(it *item, body bool) (e *Entry, err error) {
	f.mu.Lock()
	now := *it
	f.mu.Unlock()
	if now.unsaved != nil {
		copied := *now.unsaved
		return &copied, nil
	}
	err = safely(func() error {
		return f.db.View(func(tx *bolt.Tx) error {
			raw := tx.Bucket(waitBucket).Get(key(now.seq))
			if raw == nil {
				raw = tx.Bucket(endedBucket).Get(key(now.seq))
			}
			if raw == nil {
				return ErrNone
			}
			if e, err = decode(raw); err != nil {
				return err
			}
			if body {
				e.Request.Body = slices.Clone(tx.Bucket(bodyBucket).Get(key(now.seq)))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	e.State, e.Attempts, e.Next, e.Reason, e.Expires = now.state, now.attempts, now.next, now.reason, now.expires
	return e, nil
}

func key(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// put writes an entry with its body.
func put(tx *bolt.Tx, bucket []byte, seq uint64, e *Entry) error {
	if len(e.Request.Body) > 0 {
		if err := tx.Bucket(bodyBucket).Put(key(seq), e.Request.Body); err != nil {
			return err
		}
	}
	return putRecord(tx, bucket, seq, e)
}

func putRecord(tx *bolt.Tx, bucket []byte, seq uint64, e *Entry) error {
	raw, err := encode(e)
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put(key(seq), raw)
}

// remove removes an entry that has ended, and the body of its request.
func remove(tx *bolt.Tx, seq uint64) error {
	return errors.Join(tx.Bucket(endedBucket).Delete(key(seq)), tx.Bucket(bodyBucket).Delete(key(seq)))
}

// safely turns a panic into an error: bbolt panics on some damaged pages. It maps the file into
// memory, so an unreadable or truncated file causes a fault.
func safely(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &faultError{p}
		}
	}()
	return f()
}

// faultError is the panic of bbolt, or the fault of the disk, about unreadable pages.
type faultError struct{ what any }

func (e *faultError) Error() string { return fmt.Sprintf("the file is damaged: %v", e.what) }
