package main

import (
	"context"
	"fmt"
	"strconv"

	"tidegate.dev/tidegate/bench/internal/process"
)

// playChild is main of the processes this program starts of itself.
func playChild(ctx context.Context, part string, args []string) error {
	process.EndWithParent()
	switch {
	case part == "bytes" && len(args) == 2:
		keys, err := strconv.Atoi(args[1])
		if err != nil || keys <= 0 {
			return fmt.Errorf("child bytes: %q is not a number of keys", args[1])
		}
		return bytesChild(args[0], keys)
	case part == "serve" && len(args) == 0:
		return serveChild(ctx)
	}
	return fmt.Errorf("no such child: %q %q", part, args)
}
