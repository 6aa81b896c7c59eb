//go:build !unix

package pressure

import "time"

// processTime is unknown on this system.
func processTime() (time.Duration, bool) { return 0, false }
