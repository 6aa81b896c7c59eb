//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: files have no group here.
func keepOwner(*os.File, fs.FileInfo) bool { return true }
