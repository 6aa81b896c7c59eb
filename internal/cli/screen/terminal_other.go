//go:build !linux && !darwin

package screen

import "os"

func keysAtOnce(*os.File) (func() error, error) { return nil, ErrNone }

func rowsOf(*os.File) int { return 0 }

func onResize(func()) (stop func()) { return func() {} }
