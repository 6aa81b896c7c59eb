package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// hashed is a file's hash with its name relative to the rule file or folder, so that machines that
// keep it in different places get the same sum.
type hashed struct {
	name string
	sum  [sha256.Size]byte
}

func newHashed(base, name string, text []byte) hashed {
	return hashed{from(base, name), sha256.Sum256(text)}
}

// from returns name relative to the folder base, with slashes; name itself if that is impossible.
func from(base, name string) string {
	rel, err := filepath.Rel(base, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// sum returns the hash of the names and contents of files, in their order.
func sum(files []hashed) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %x\n", f.name, f.sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// joined returns one hash for those of several layers; that of a single layer as it is.
func joined(sums []string) string {
	if len(sums) == 1 {
		return sums[0]
	}
	h := sha256.New()
	for _, s := range sums {
		fmt.Fprintln(h, "layer", s)
	}
	return hex.EncodeToString(h.Sum(nil))
}
