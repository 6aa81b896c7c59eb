// Package envoy reads configurations of envoyproxy/ratelimit: files with a root `domain`
// and nested `descriptors`. It finds the limit that applies to a descriptor of Envoy's
// rate limit service, and the counter that it is held to.
//
// Start with [Load], then [Set.Domain] and [Domain.Find]:
//
//	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: text}}, envoy.Options{})
//	if err != nil {
//		return err // every mistake of the files, with its line
//	}
//	rule := set.Domain("rl").Find([]envoy.Entry{{"foo", "pelle"}, {"baz", "shady"}})
//
// Package rules loads folders in which such files and rule files are together. This
// package decides and counts nothing, and it does not speak gRPC.
package envoy
