package config

// connectionsFor returns the default of limits.connections where so many files may be open at
// once; 0 means any. Each client may need a connection to an upstream, those above the
// limit are told so, and the rest is for Redis, logs, lists, the admin listener and the
// like: together they must fit, or nothing could be opened any more.
func connectionsFor(files uint64) int {
	if files == 0 {
		return 0
	}
	files = min(files, 1<<40)
	left := files - min(64, files/4)
	limit := left / 3 // the gateway tells as many, where that is few
	switch {
	case limit > 512:
		limit = left * 8 / 17 // or an eighth
	case limit > 64:
		limit = max(64, min(512, (left-64)/2)) // or 64
	}
	return int(max(1, min(limit, mostConnections)))
}
