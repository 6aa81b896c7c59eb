package screen

import "golang.org/x/sys/unix"

const getMode, setMode = unix.TCGETS, unix.TCSETS
