package deferq

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Buckets of the file. Keys are numbers in the order of acceptance.
var (
	metaBucket  = []byte("meta")
	waitBucket  = []byte("waiting") // number → record
	bodyBucket  = []byte("bodies")  // number → body of the request
	endedBucket = []byte("ended")   // number → record
	versionKey  = []byte("version")
)

// read returns the entry of an item as it is now.
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
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put(key(seq), raw)
}

// remove forgets an entry that has ended.
func remove(tx *bolt.Tx, seq uint64) error {
	return errors.Join(tx.Bucket(endedBucket).Delete(key(seq)), tx.Bucket(bodyBucket).Delete(key(seq)))
}

func decode(raw []byte) (*Entry, error) {
	var e Entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	if e.V != Version {
		return nil, &versionError{e.V}
	}
	return &e, nil
}

// versionError says that a record is of another version of this program.
type versionError struct{ is int }

func (e *versionError) Error() string {
	return fmt.Sprintf("its version is %d, and this program knows %d", e.is, Version)
}

// safely turns a panic into an error: bbolt panics on some pages that are damaged.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return f()
}
