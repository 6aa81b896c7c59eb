//go:build !linux

package main

import "context"

// watchCores does nothing here: the machine is watched as a whole.
func (*probe) watchCores(context.Context) {}
