package redis

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// What a node tells about itself is kept beside the set that it is registered in, in the same
// slot: under PREFIX:nodes{PREFIX:nodes}:ID, or PREFIX:nodes{NUMBER}:ID. It is the µs of
// Redis' clock at which it was told, a space, and the text.

// aboutKey returns the key of what a node tells.
func aboutKey(nodeSet, id string) string {
	base, tag, found := strings.Cut(nodeSet, "{")
	if tag = strings.TrimSuffix(tag, "}"); !found {
		tag = nodeSet
	}
	return base + "{" + tag + "}:" + id
}

const (
	maxListed    = 4096 // nodes of a fleet
	maxNodeName  = 64   // bytes; others have longer ones, and are not ours
	aboutAtOnce  = 256  // texts per call
	maxAboutText = chain.MaxAbout + 24
)

var (
	nodesScript = sync.OnceValue(func() *script { return newScript("nodes") })
	aboutScript = sync.OnceValue(func() *script { return newScript("about") })
)

// Entries lists the nodes that are registered, by name. In a cluster and on shards there may
// be both entries and an error, which says which servers did not answer.
func (s fleetStore) Entries(ctx context.Context) ([]chain.Entry, error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	s.awaitTopology(ctx)
	nodeSets := s.nodeSets()
	type answer struct {
		server  string
		entries []chain.Entry
		err     error
	}
	answers := make(chan answer, len(nodeSets))
	missed := unanswered{}
	for _, set := range nodeSets {
		missed[set.server] = errNoAnswer
		go func() {
			entries, err := s.entriesAt(ctx, set)
			answers <- answer{set.server, entries, err}
		}()
	}
	all := make(map[string]chain.Entry)
	for range nodeSets {
		select {
		case a := <-answers:
			if missed[a.server] = a.err; a.err == nil {
				delete(missed, a.server)
			}
			for _, e := range a.entries {
				all[e.ID] = newer(all[e.ID], e)
			}
			continue
		case <-ctx.Done():
		}
		break
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b chain.Entry) int { return strings.Compare(a.ID, b.ID) })
	if len(missed) == 0 {
		return list, nil
	}
	if err, single := missed[""]; single {
		return list, s.failure("list the instances", err)
	}
	for name, err := range missed {
		missed[name] = s.failure("list the instances", err)
	}
	return list, missed
}

// newer joins what two servers know of a node: the newer About, and the later end.
func newer(a, b chain.Entry) chain.Entry {
	if a.About == "" || b.About != "" && b.Age < a.Age {
		a, b = b, a
	}
	a.Expires = max(a.Expires, b.Expires)
	return a
}

// awaitTopology waits until the masters of a cluster are known, for half of the time there is:
// every node is also in the set that is known without.
func (s *Store) awaitTopology(ctx context.Context) {
	end, ok := ctx.Deadline()
	if !s.cluster || !ok {
		return
	}
	for end = time.Now().Add(time.Until(end) / 2); s.topology.current.Load() == nil && time.Now().Before(end); {
		s.refreshTopology()
		time.Sleep(5 * time.Millisecond)
	}
}

// entriesAt lists the nodes in one set.
func (s *Store) entriesAt(ctx context.Context, set nodeSet) ([]chain.Entry, error) {
	text, err := s.runText(ctx, set.at, nodesScript(), []string{set.key}, strconv.Itoa(maxListed), strconv.Itoa(maxNodeName))
	if err != nil {
		return nil, err
	}
	now := text.number()
	var all []chain.Entry
	for len(text.rest) > 0 && !text.broken {
		size, ms := text.number(), text.number()
		all = append(all, chain.Entry{ID: text.take(size), Expires: time.Duration(ms) * time.Millisecond})
	}
	if text.broken {
		return nil, invalidReply("a list of instances that breaks off")
	}
	for some := range slices.Chunk(all, aboutAtOnce) {
		if err := s.readAbout(ctx, set, some, now); err != nil {
			return all, err
		}
	}
	return all, nil
}

// readAbout fills in what nodes have told about themselves.
func (s *Store) readAbout(ctx context.Context, set nodeSet, some []chain.Entry, now int64) error {
	keys := make([]string, len(some))
	for i := range some {
		keys[i] = aboutKey(set.key, some[i].ID)
	}
	text, err := s.runText(ctx, set.at, aboutScript(), keys, strconv.Itoa(maxAboutText))
	if err != nil {
		return err
	}
	for i := range some {
		at, about, _ := strings.Cut(text.take(text.number()), " ")
		if us, err := strconv.ParseInt(at, 10, 64); err == nil && len(about) <= chain.MaxAbout {
			some[i].About, some[i].Age = about, time.Duration(max(now-us, 0))*time.Microsecond
		}
	}
	if text.broken || text.rest != "" {
		return invalidReply("texts of %d instances that do not fit", len(some))
	}
	return nil
}

// replyText is what a script answers that returns texts.
type replyText struct {
	rest   string
	broken bool
}

// runText is run for a script that answers texts, between its tag and the hash of all.
func (s *Store) runText(ctx context.Context, at *endpoint, sc *script, keys []string, args ...string) (*replyText, error) {
	var head packer
	head.number(float64(s.tag()))
	text, err := at.run(ctx, sc, keys, append([]string{string(head)}, args...))
	if err != nil {
		return nil, err
	}
	split := len(text) - hex.EncodedLen(sha1.Size)
	if split < len(head) || text[:len(head)] != string(head) {
		return nil, invalidReply("a reply to another call")
	}
	if sum := sha1.Sum([]byte(text[:split])); hex.EncodeToString(sum[:]) != text[split:] {
		return nil, invalidReply("a reply that was changed on the way")
	}
	return &replyText{rest: text[len(head):split]}, nil
}

// take returns the next bytes.
func (r *replyText) take(size int64) string {
	if r.broken = r.broken || size < 0 || size > int64(len(r.rest)); r.broken {
		return ""
	}
	text := r.rest[:size]
	r.rest = r.rest[size:]
	return text
}

// number returns the next number, which is whole.
func (r *replyText) number() int64 {
	text := r.take(8)
	if r.broken {
		return 0
	}
	x := unpack(text, 0)
	if r.broken = x != math.Trunc(x) || math.Abs(x) >= 1<<53; r.broken {
		return 0
	}
	return int64(x)
}

// handle returns the next 16 bytes.
func (r *replyText) handle() (h tidegate.Handle) {
	text := r.take(16)
	if r.broken {
		return h
	}
	return tidegate.Handle{binary.LittleEndian.Uint64([]byte(text[:8])), binary.LittleEndian.Uint64([]byte(text[8:]))}
}

// forget removes a node and what it told.
func (set nodeSet) forget(ctx context.Context, id string) error {
	client, err := set.at.client.get(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		client.Do(ctx, client.B().Zrem().Key(set.key).Member(id).Build()).Error(),
		client.Do(ctx, client.B().Del().Key(aboutKey(set.key, id)).Build()).Error())
}
