package region

import (
	"fmt"
	"strconv"
	"strings"
)

// cursor is how far a region has been told, of which data set and to which.
type cursor struct {
	since          int64
	all            bool // everything is being told, whatever region it is of
	source, target string
}

func (c cursor) String() string {
	return fmt.Sprintf("%d %t %s %s", c.since, c.all, c.source, c.target)
}

// parseCursor reads what was saved. What cannot be read means that everything is told once more.
func parseCursor(text string) cursor {
	if fields := strings.Split(text, " "); len(fields) == 4 {
		since, err := strconv.ParseInt(fields[0], 10, 64)
		if err == nil && since >= 0 && since < nothing && (fields[1] == "true" || fields[1] == "false") {
			return cursor{since, fields[1] == "true", fields[2], fields[3]}
		}
	}
	return cursor{all: true}
}
