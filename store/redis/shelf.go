package redis

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate/internal/chain"
)

// A shelf is in one slot of a cluster, that of the key PREFIX:shelf:NAME, or on the first
// shard by name. No counter has a key like these, since theirs contain :{.
//
//	PREFIX:shelf:NAME                             a list of the versions, and the channel on which new ones are announced
//	PREFIX:shelf:NAME{PREFIX:shelf:NAME}:text:N   the text of a version, in parts: version V is at V modulo chain.MaxVersions
//	PREFIX:shelf:NAME{PREFIX:shelf:NAME}:new:ID   parts of a text that is being sent
//
// The commands are those that counters need, so that no permission is new but that of the
// channel, without which others notice a new version when they look.

// fleetShelf is a chain.Shelf of a Store.
type fleetShelf struct {
	fleetTable
	base string
}

var _ chain.Shelf = fleetShelf{}

// Shelf is for package rules/source/redis, and for package fleet. A name consists of
// letters, digits and ._-.
func (s fleetStore) Shelf(name string) chain.Shelf {
	at := byName(s.endpoints[:max(s.shards, 1)])[0]
	return fleetShelf{fleetTable{s.Store, at}, s.prefix + ":shelf:" + name}
}

func (f fleetShelf) key(kind, id string) string {
	return f.base + "{" + f.base + "}:" + kind + ":" + id
}

func (f fleetShelf) textKey(number int64) string {
	return f.key("text", decimal(number%chain.MaxVersions))
}

var (
	stageScript  = sync.OnceValue(func() *script { return newScript("stage") })
	shelveScript = sync.OnceValue(func() *script { return newScript("shelve") })
)

const (
	// partSize is how much of a text one command has: a reply is at most 1 MiB.
	partSize = 512 << 10
	// stagedFor is how long parts wait for the next.
	stagedFor = 10 * time.Minute
	// maxVersionText is how long a version is in the list.
	maxVersionText = chain.MaxLabel + 512
)

// Newest implements chain.Shelf.
func (f fleetShelf) Newest(ctx context.Context) (chain.Version, error) {
	all, err := f.versions(ctx, -1, 1)
	if err != nil || len(all) == 0 {
		return chain.Version{}, err
	}
	return all[0], nil
}

// Versions implements chain.Shelf.
func (f fleetShelf) Versions(ctx context.Context) ([]chain.Version, error) {
	all, err := f.versions(ctx, -chain.MaxVersions, chain.MaxVersions)
	slices.Reverse(all)
	return all, err
}

func (f fleetShelf) versions(ctx context.Context, from, count int) ([]chain.Version, error) {
	const what = "read the versions"
	part, _, err := f.slice(ctx, what, f.base, from, count, maxVersionText)
	if err != nil {
		return nil, err
	}
	var all []chain.Version
	for _, text := range part {
		v, err := parseVersion(text)
		if err != nil {
			return nil, failure(what, fmt.Errorf("%w under the key %s: delete it, or use another name", err, f.base))
		}
		all = append(all, v)
	}
	return all, nil
}

var errForeign = errors.New("somebody else keeps something")

// parseVersion reads a version as shelve.lua writes it.
func parseVersion(text string) (v chain.Version, err error) {
	fields := strings.SplitN(text, " ", 6)
	if len(fields) != 6 {
		return v, errForeign
	}
	number, err1 := strconv.ParseInt(fields[0], 10, 64)
	us, err2 := strconv.ParseInt(fields[2], 10, 64)
	size, err3 := strconv.ParseInt(fields[3], 10, 64)
	if errors.Join(err1, err2, err3) != nil || number < 1 || number >= 1<<53 || us < 0 || size < 0 || size > chain.MaxText || fields[1] == "" {
		return v, errForeign
	}
	return chain.Version{Number: number, ID: fields[1], At: time.UnixMicro(us).UTC(), Size: size, Sum: fields[4], Label: fields[5]}, nil
}

// Read implements chain.Shelf. Should the version be replaced meanwhile, what was read is
// not what it says.
func (f fleetShelf) Read(ctx context.Context, v chain.Version) ([]byte, error) {
	const what = "read a version"
	text := make([]byte, 0, v.Size)
	for i := 0; i == 0 || int64(len(text)) < v.Size; i++ {
		part, _, err := f.slice(ctx, what, f.textKey(v.Number), i, 1, partSize)
		switch {
		case err != nil:
			return nil, err
		case len(part) == 0, i == 0 && part[0] != v.ID, i > 0 && part[0] == "":
			return nil, failure(what, chain.ErrNotKept)
		case i > 0:
			text = append(text, part[0]...)
		}
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != v.Sum {
		return nil, failure(what, chain.ErrNotKept)
	}
	return text, nil
}

// Put implements chain.Shelf. The text is sent in parts, and put in place by one script.
func (f fleetShelf) Put(ctx context.Context, after chain.Version, label string, text []byte) (chain.Version, error) {
	const what = "write a version"
	if len(label) > chain.MaxLabel || len(text) > chain.MaxText {
		return chain.Version{}, fmt.Errorf("redis: %s: %d bytes, and %d about it, are too much", what, len(text), len(label))
	}
	id := rand.Text()
	parts := 0
	for part := range slices.Chunk(text, partSize) {
		reply, err := f.run(ctx, what, stageScript(), []string{f.key("new", id)}, decimal(int64(stagedFor.Seconds())), string(part))
		if err != nil {
			return chain.Version{}, err
		}
		if parts++; reply.number() != int64(parts) {
			return chain.Version{}, failure(what, invalidReply("parts are missing"))
		}
	}
	sum := sha256.Sum256(text)
	about := fmt.Sprintf("%d %x %s", len(text), sum, label)
	reply, err := f.run(ctx, what, shelveScript(), []string{f.base, f.key("new", id), f.textKey(after.Number + 1)},
		decimal(after.Number), after.ID, id, strconv.Itoa(parts), strconv.Itoa(chain.MaxVersions), f.base, about)
	if err != nil {
		return f.find(ctx, id, err)
	}
	done, newest := reply.number(), reply.take(reply.number())
	switch {
	case reply.broken || reply.rest != "":
		return chain.Version{}, failure(what, invalidReply("a version that breaks off"))
	case done == 0:
		return chain.Version{}, failure(what, chain.ErrMoved)
	case done != 1:
		return chain.Version{}, failure(what, errors.New("parts of it are missing: it took too long to send them"))
	}
	v, err := parseVersion(newest)
	return v, failure(what, err)
}

// find looks whether a version was put although the answer was lost.
func (f fleetShelf) find(ctx context.Context, id string, err error) (chain.Version, error) {
	if v, newErr := f.Newest(ctx); newErr == nil && v.ID == id {
		return v, nil
	}
	return chain.Version{}, err
}

// Watch implements chain.Shelf.
func (f fleetShelf) Watch(ctx context.Context, changed func()) error {
	client, err := f.at.client.get(ctx)
	if err == nil {
		err = client.Receive(ctx, client.B().Subscribe().Channel(f.base).Build(), func(rueidis.PubSubMessage) { changed() })
	}
	return failure("listen for versions", err)
}
