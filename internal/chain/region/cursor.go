package region

import (
	"fmt"
	"strconv"
	"strings"
)

// cursor says that another region has everything up to the change since. That holds only while the
// store of this region has the data set source, and that of the other region target.
type cursor struct {
	since          int64
	all            bool // counts of all regions are being sent, not only those of this one
	source, target string
}

func (c cursor) String() string {
	return fmt.Sprintf("%d %t %s %s", c.since, c.all, c.source, c.target)
}

// parseCursor reads what String wrote. If it cannot, everything is sent once more.
func parseCursor(text string) cursor {
	if fields := strings.Split(text, " "); len(fields) == 4 {
		since, err := strconv.ParseInt(fields[0], 10, 64)
		if err == nil && since >= 0 && since < nothing && (fields[1] == "true" || fields[1] == "false") {
			return cursor{since, fields[1] == "true", fields[2], fields[3]}
		}
	}
	return cursor{all: true}
}
