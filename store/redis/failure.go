package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

var (
	errNoURL  = errors.New("no address: give a URL such as redis://localhost:6379")
	errClosed = errors.New("the store is closed")
	errRecord = errors.New("the reservation was not written by this version of Tidegate")
	errMissed = errors.New("the calendar of this process does not reach Redis' clock: compare their times")
)

// advice is what to do about an error that Redis begins with a word.
var advice = map[string]string{
	"NOAUTH":      "give a password, as in redis://:password@host",
	"WRONGPASS":   "the user name or the password is wrong",
	"NOPERM":      "the user needs to read, write and run scripts on the keys of the prefix",
	"OOM":         "the server is out of memory: raise maxmemory",
	"READONLY":    "the server is a replica: ask Sentinel or the cluster for the master",
	"MOVED":       "the server is a node of a cluster: use redis-cluster:// or several addresses",
	"CROSSSLOT":   "the server is a node of a cluster: use redis-cluster:// or several addresses",
	"CLUSTERDOWN": "the cluster has slots without a master",
	"MASTERDOWN":  "the server is a replica that has lost its master",
	"WRONGTYPE":   "somebody else keeps something under this key: use another prefix",
}

// failure says what could not be done, and what helps.
func failure(what string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := rueidis.IsRedisErr(err); ok {
		word, _, _ := strings.Cut(e.Error(), " ")
		if hint := advice[word]; hint != "" {
			return fmt.Errorf("redis: %s: %w (%s)", what, err, hint)
		}
	}
	return fmt.Errorf("redis: %s: %w", what, err)
}
