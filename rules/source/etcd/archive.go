package etcd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"tidegate.dev/tidegate/internal/lang/rulepack"
	"tidegate.dev/tidegate/rules/source"
)

// Publish implements [source.Archive]. One transaction writes all files; etcd limits its size. If
// the files were changed by other means, they are kept as a revision first.
func (a *Archive) Publish(ctx context.Context, b *source.Bundle, head string) (string, error) {
	if len(b.Files) == 0 {
		return "", errors.New("a rule set without files cannot be published")
	}
	label := rulepack.Label{
		Digest: rulepack.Digest(b.Mains(), b.Files), Hash: b.Hash, Main: b.Main, Over: b.Over,
		Author: b.Author, Reason: b.Reason, At: time.Now().UTC(), // etcd does not record times
	}
	text, packed, err := pack(label, b.Files)
	if err != nil {
		return "", err
	}
	s, err := a.snapshot(ctx)
	if err != nil {
		return "", err
	}
	if s.revision() != head {
		return "", source.ErrConflict
	}
	kept, err := a.kept(ctx, s.at, clientv3.WithKeysOnly())
	if err != nil {
		return "", err
	}
	ops := a.files(s, b)
	add := map[string]string{a.headKey(): text, fmt.Sprintf("%s%020d", a.revisionsKey(), s.at): packed}
	if len(s.files) > 0 && s.label == nil { // the replaced files were not published
		_, packed, err := pack(rulepack.Label{Digest: s.digest, Main: s.mains[0], Over: s.mains[1:], Revision: s.revision()}, s.files)
		if err != nil {
			return "", err
		}
		add[fmt.Sprintf("%s%020d", a.revisionsKey(), s.at-1)] = packed
	}
	for _, key := range slices.Sorted(maps.Keys(add)) {
		ops = append(ops, clientv3.OpPut(key, add[key]))
	}
	for i, kv := range kept { // newest first
		if i >= source.Kept-(len(add)-1) {
			ops = append(ops, clientv3.OpDelete(string(kv.Key)))
		}
	}
	return a.commit(ctx, s, ops, &label, text)
}

// files returns the operations that replace the files of s by those of b.
func (a *Archive) files(s *snapshot, b *source.Bundle) (ops []clientv3.Op) {
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		ops = append(ops, clientv3.OpPut(a.prefix+"/"+name, string(b.Files[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if _, stays := b.Files[name]; !stays {
			ops = append(ops, clientv3.OpDelete(a.prefix+"/"+name))
		}
	}
	return ops
}

// commit applies ops, if the files are still those of s.
func (a *Archive) commit(ctx context.Context, s *snapshot, ops []clientv3.Op, label *rulepack.Label, text string) (string, error) {
	// Nothing was written since, and nothing was deleted.
	same := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(a.prefix+"/"), "<", s.at+1).WithPrefix()}
	for _, name := range slices.Sorted(maps.Keys(s.mods)) {
		same = append(same, clientv3.Compare(clientv3.ModRevision(a.prefix+"/"+name), "=", s.mods[name]))
	}
	client, err := a.connect()
	if err != nil {
		return "", err
	}
	timed, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := client.Txn(timed).If(same...).Then(ops...).Commit()
	if err != nil {
		err = a.failure(fmt.Sprintf("publish by one transaction of %d operations", len(ops)), err)
		// The transaction may have succeeded, with only its answer lost.
		if now, newErr := a.snapshot(ctx); newErr == nil && now.head == text && now.label != nil {
			return now.revision(), nil
		}
		return "", err
	}
	if !answer.Succeeded {
		return "", source.ErrConflict
	}
	return rulepack.Revision(answer.Header.GetRevision(), label.Digest), nil
}

// pack returns a label as text, and the value that keeps it together with its files.
func pack(l rulepack.Label, files map[string][]byte) (text, packed string, err error) {
	text, err = l.String()
	if err != nil {
		return "", "", err
	}
	tar, err := rulepack.Write(files)
	return text, text + "\n" + string(tar), err
}

// kept returns the revisions that were kept as of a revision of etcd, newest first.
func (a *Archive) kept(ctx context.Context, at int64, options ...clientv3.OpOption) ([]*mvccpb.KeyValue, error) {
	answer, err := a.get(ctx, a.revisionsKey(), append(options, clientv3.WithPrefix(), clientv3.WithRev(at),
		clientv3.WithLimit(2*source.Kept), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))...)
	if err != nil {
		return nil, a.failure("read the revisions", err)
	}
	return answer.Kvs, nil
}

// revision is a kept revision.
type revision struct {
	source.Edition
	mains  []string
	digest string
	packed []byte
}

func (a *Archive) revisions(ctx context.Context) ([]revision, error) {
	kept, err := a.kept(ctx, 0)
	if err != nil {
		return nil, err
	}
	var all []revision
	for _, kv := range kept {
		text, packed, _ := bytes.Cut(kv.Value, []byte("\n"))
		l, err := rulepack.ParseLabel(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", a.name, kv.Key, err)
		}
		all = append(all, revision{
			Edition: source.Edition{
				Revision: cmp.Or(l.Revision, rulepack.Revision(kv.ModRevision, l.Digest)),
				Hash:     l.Hash, Author: l.Author, Reason: l.Reason, At: l.At,
			},
			mains: l.Mains(), digest: l.Digest, packed: packed,
		})
	}
	return all[:min(len(all), source.Kept)], nil
}

// History implements [source.Archive]. If the files were changed by other means, they come first.
func (a *Archive) History(ctx context.Context) ([]source.Edition, error) {
	s, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	all, err := a.revisions(ctx)
	if err != nil {
		return nil, err
	}
	var editions []source.Edition
	if now := s.revision(); now != "" && s.label == nil {
		editions = append(editions, source.Edition{Revision: now})
	}
	for _, r := range all {
		editions = append(editions, r.Edition)
	}
	return editions[:min(len(editions), source.Kept)], nil
}

// Get implements [source.Archive]. The number alone identifies a revision.
func (a *Archive) Get(ctx context.Context, name string) (*source.Bundle, error) {
	s, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if now := s.revision(); now != "" && rulepack.Means(name, now) {
		return s.bundle(), nil
	}
	all, err := a.revisions(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if !rulepack.Means(name, r.Revision) {
			continue
		}
		files, err := rulepack.Read(r.packed)
		if err == nil && rulepack.Digest(r.mains, files) != r.digest {
			err = errors.New("its files are not those that were published")
		}
		if err != nil {
			return nil, fmt.Errorf("%s, revision %s: %w", a.name, r.Revision, err)
		}
		return &source.Bundle{Edition: r.Edition, Main: r.mains[0], Over: r.mains[1:], Files: files}, nil
	}
	return nil, source.ErrNoRevision
}
