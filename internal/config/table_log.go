package config

import (
	"log/slog"
)

// logTable has the settings of logs.
var logTable = []*setting{
	{
		path: "log.access", example: Stdout, fallback: Stdout, file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Log.Access }, output),
		help: "`WHERE` a line for each request goes: stdout, stderr, off, or a file",
	},
	{
		path: "log.format", example: JSON, fallback: JSON,
		slot: one(func(c *Config) *string { return &c.Log.Format }, oneOf(JSON, Text)),
		help: "`FORMAT` of all lines: json or text",
	},
	{
		path: "log.keys", example: Plain, fallback: Hashed,
		slot: one(func(c *Config) *string { return &c.Log.Keys }, oneOf(Hashed, Plain, Off)),
		help: "`HOW` the access log shows who was refused: hashed (addresses are shown as they are), plain, or off",
	},
	{
		path: "log.level", example: "info", fallback: "info",
		slot: one(func(c *Config) *slog.Level { return &c.Log.Level }, named(
			[]string{"debug", "info", "warn", "error"}, []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError})),
		help: "lowest `LEVEL` that the process logs about itself: debug, info, warn or error",
	},
}
