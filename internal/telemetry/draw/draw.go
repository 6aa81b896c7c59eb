// Package draw has random numbers for sampling, on paths where those of math/rand/v2 would be a good
// part of what is measured: 3 ns instead of 10. They are not for secrets, nor for anything that
// somebody may want to foresee.
package draw

import _ "unsafe" // for go:linkname

// Uint32 returns a random number from the generator that each thread of the runtime has. The
// runtime keeps the name for packages that use it so; see go.dev/issue/67401.
//
//go:linkname Uint32 runtime.cheaprand
func Uint32() uint32
