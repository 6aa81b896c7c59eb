// Package origins opens sources of rules by their URLs, for serve and for the commands of
// operators. Each kind of source is a package below rules/source; only this one knows them all.
//
// Start with [Open].
package origins

import (
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/dogma"
	"tidegate.dev/tidegate/rules/source/feed"
	"tidegate.dev/tidegate/rules/source/httpsource"
)

// Options are what a URL does not say.
type Options struct {
	TokenFile          string        // file with a bearer token, for HTTP and Central Dogma
	User, PasswordFile string        // for etcd, and for a Redis whose URL has no user
	CA, Cert, Key      string        // PEM files for TLS; "" means the system's authorities and no client certificate
	Wait               time.Duration // how long a source waits for changes before it answers; 0 means a minute
	Node               string        // name of this process for operators; a source may list it
	// Report returns what an HTTP source is told about this process; nil means nothing.
	Report func(name string) feed.Report
}

// IsRemote reports whether name is the URL of a source, not a file or folder.
func IsRemote(name string) bool { return strings.Contains(name, "://") }

// Open returns the source at a URL. It does not connect: an unreachable source shows when it is
// asked. The error is about the URL or the files of o.
func Open(url string, o Options) (source.Origin, error) {
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	scheme, _, _ := strings.Cut(url, "://")
	switch scheme {
	case "redis", "rediss", "valkey", "valkeys", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel", "unix":
		return openRedis(url, o)
	case "etcd", "etcds":
		return openEtcd(url, o)
	case "http", "https":
		return openHTTP(url, o)
	case "dogma", "dogmas":
		return opened(dogma.New(dogma.Options{URL: url, TokenFile: o.TokenFile, CA: o.CA, Cert: o.Cert, Key: o.Key, Wait: o.Wait}))
	}
	return nil, fmt.Errorf("rules cannot come from %s:// here", scheme)
}

func openHTTP(url string, o Options) (source.Origin, error) {
	h := httpsource.Options{URL: url, TokenFile: o.TokenFile, CA: o.CA, Cert: o.Cert, Key: o.Key, Wait: o.Wait}
	var s *httpsource.Source
	if o.Report != nil {
		h.Report = func() feed.Report { return o.Report(s.Name()) }
	}
	var err error
	s, err = httpsource.New(h)
	return opened(s, err)
}

// opened returns s, or nil if there is an error.
func opened[S source.Origin](s S, err error) (source.Origin, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Layers returns the layers that rules are read from: files and folders by their names, and
// sources by their URLs.
func Layers(names []string, o Options) ([]source.Layer, error) {
	var all []source.Layer
	for _, name := range names {
		l := source.Layer{Name: name}
		if IsRemote(name) {
			origin, err := Open(name, o)
			if err != nil {
				for _, l := range all {
					if l.Origin != nil {
						_ = l.Origin.Close() // nothing was asked of it
					}
				}
				return nil, err
			}
			l.Origin = origin
		}
		all = append(all, l)
	}
	return all, nil
}
