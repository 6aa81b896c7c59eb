package config

// connectionsFor returns the default of limits.connections if that many files may be open at
// once; 0 means any number. It leaves files for a connection to an upstream per client, for the
// surplus connections whose clients are told (see listen.Limits.Surplus), and for Redis, logs,
// lists, the admin listener and the like: otherwise nothing could be opened any more.
func connectionsFor(files uint64) int {
	if files == 0 {
		return 0
	}
	files = min(files, 1<<40)
	left := files - min(64, files/4)
	limit := left / 3 // up to 64 connections, the surplus is as many
	switch {
	case limit > 512:
		limit = left * 8 / 17 // above 512, it is an eighth
	case limit > 64:
		limit = max(64, min(512, (left-64)/2)) // in between, it is 64
	}
	return int(max(1, min(limit, mostConnections)))
}
