package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"tidegate.dev/tidegate/internal/lang/rulepack"
	"tidegate.dev/tidegate/rules/source"
)

// snapshot is the files below the prefix and their label, at one revision of etcd.
type snapshot struct {
	at     int64 // the revision
	files  map[string][]byte
	mods   map[string]int64 // revisions at which the files were last written
	newest int64            // the highest of mods
	mains  []string         // first files of the layers
	digest string
	head   string          // the label that was published last, as text
	headAt int64           // the revision of etcd that published it
	label  *rulepack.Label // of these files; nil if they were changed by other means since
}

// Keys of a set. What is published is kept beside the files, not below their prefix.
func (a *Archive) headKey() string      { return a.prefix + ".tidegate/head" }
func (a *Archive) revisionsKey() string { return a.prefix + ".tidegate/revisions/" }

const (
	pageSize  = 100 // keys in one answer
	compacted = 3   // how often a snapshot is tried if its revision is compacted
)

// snapshot reads all files. It starts over if etcd compacts the revision that it reads.
func (a *Archive) snapshot(ctx context.Context) (*snapshot, error) {
	for tries := 1; ; tries++ {
		s, err := a.read(ctx)
		if err == nil {
			return s, s.complete(a.name)
		}
		if !errors.Is(err, rpctypes.ErrCompacted) || tries == compacted {
			return nil, a.failure("read the rules", err)
		}
	}
}

func (a *Archive) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{files: make(map[string][]byte), mods: make(map[string]int64)}
	total := 0
	err := a.pages(ctx, 0, &s.at, func(kv *mvccpb.KeyValue) error {
		name := strings.TrimPrefix(string(kv.Key), a.prefix+"/")
		if name == "" && len(kv.Value) == 0 {
			return nil // some tools create a key for the folder itself
		}
		if err := rulepack.CheckName(name); err != nil {
			return fmt.Errorf("key %.200q: %w", kv.Key, err)
		}
		if total += len(kv.Value); total > rulepack.MaxBytes || len(s.files) == rulepack.MaxFiles {
			return fmt.Errorf("below %s/ are more than %d files, or more than %d MiB", a.prefix, rulepack.MaxFiles, rulepack.MaxBytes>>20)
		}
		s.files[name], s.mods[name] = kv.Value, kv.ModRevision
		s.newest = max(s.newest, kv.ModRevision)
		return nil
	})
	if err != nil {
		return nil, err
	}
	head, err := a.get(ctx, a.headKey(), clientv3.WithRev(s.at))
	if err != nil {
		return nil, err
	}
	if len(head.Kvs) > 0 {
		s.head, s.headAt = string(head.Kvs[0].Value), head.Kvs[0].ModRevision
	}
	return s, nil
}

// complete finds the label of the files.
func (s *snapshot) complete(name string) error {
	if err := rulepack.Check(s.files); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l, err := rulepack.ParseLabel(s.head)
	s.mains = []string{""}
	if err == nil && !slices.ContainsFunc(l.Mains(), func(main string) bool { return main != "" && !s.has(main) }) {
		s.mains = l.Mains()
	}
	s.digest = rulepack.Digest(s.mains, s.files)
	if err == nil && l.Digest == s.digest {
		s.label = &l
	}
	return nil
}

// has reports whether there is such a file or, if main ends with a slash, a file in that folder.
func (s *snapshot) has(main string) bool {
	for name := range s.files {
		if name == main || strings.HasSuffix(main, "/") && strings.HasPrefix(name, main) {
			return true
		}
	}
	return false
}

// revision returns the name of the revision. For files that were changed by other means the number
// may decrease: it is lower after the newest file was deleted.
func (s *snapshot) revision() string {
	switch {
	case len(s.files) == 0:
		return ""
	case s.label == nil:
		return fmt.Sprintf("%d-edited-%s", s.newest, s.digest[:8])
	}
	return rulepack.Revision(s.headAt, s.digest)
}

func (s *snapshot) bundle() *source.Bundle {
	b := &source.Bundle{Edition: source.Edition{Revision: s.revision()}, Main: s.mains[0], Over: s.mains[1:], Files: s.files}
	if l := s.label; l != nil {
		b.Hash, b.Author, b.Reason, b.At = l.Hash, l.Author, l.Reason, l.At
	}
	return b
}

// unchanged reports whether the files are still those of s as of at, the latest revision of etcd.
func (a *Archive) unchanged(ctx context.Context, s *snapshot) (at int64, same bool, err error) {
	seen := 0
	same = true
	err = a.pages(ctx, 0, &at, func(kv *mvccpb.KeyValue) error {
		name := strings.TrimPrefix(string(kv.Key), a.prefix+"/")
		if name != "" {
			seen++
			same = same && s.mods[name] == kv.ModRevision
		}
		return nil
	}, clientv3.WithKeysOnly())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, a.failure("look for other rules", err)
	}
	return at, same && seen == len(s.mods), nil
}

// pages calls each for all keys below the prefix, at one revision: rev or, if that is 0, the
// latest, which it stores in at.
func (a *Archive) pages(ctx context.Context, rev int64, at *int64, each func(*mvccpb.KeyValue) error, options ...clientv3.OpOption) error {
	from, end := a.prefix+"/", clientv3.GetPrefixRangeEnd(a.prefix+"/")
	for pages := 0; pages <= rulepack.MaxFiles/pageSize+1; pages++ {
		page, err := a.get(ctx, from, append(options, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(rev))...)
		if err != nil {
			return err
		}
		if rev == 0 {
			rev = page.Header.GetRevision()
			*at = rev
		}
		for _, kv := range page.Kvs {
			if err := each(kv); err != nil {
				return err
			}
			from = string(kv.Key) + "\x00"
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
	}
	return fmt.Errorf("below %s/ are more than %d keys", a.prefix, rulepack.MaxFiles)
}

func (a *Archive) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	client, err := a.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return client.Get(ctx, key, options...)
}
