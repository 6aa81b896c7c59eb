package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/diag"
)

// logs are where a server writes what happens.
type logs struct {
	log    *slog.Logger // about the process
	access *slog.Logger // about requests; nil: nobody wants to know
	plain  bool         // for people to read
	file   io.Closer    // of access; nil: none of its own
}

func openLogs(c config.Log, env Env) (logs, error) {
	l := logs{plain: c.Format == config.Text}
	l.log = slog.New(l.handler(env.Stderr, c.Level))
	switch c.Access {
	case config.Off:
	case config.Stdout:
		l.access = slog.New(l.handler(env.Stdout, slog.LevelInfo))
	case config.Stderr:
		l.access = slog.New(l.handler(env.Stderr, slog.LevelInfo))
	default:
		f, err := os.OpenFile(c.Access, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			return l, fmt.Errorf("open the access log: %w", err)
		}
		l.access, l.file = slog.New(l.handler(f, slog.LevelInfo)), f
	}
	return l, nil
}

func (l *logs) handler(w io.Writer, level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if l.plain {
		return slog.NewTextHandler(w, o)
	}
	return slog.NewJSONHandler(w, o)
}

func (l *logs) close() {
	if l.file != nil {
		l.file.Close()
	}
}

// warn tells of what is doubtful: with carets to people, in lines to machines.
func (s *server) warn(doubts diag.List) {
	if s.plain {
		doubts.Write(s.env.Stderr, false)
		return
	}
	for _, d := range doubts {
		at := d.File
		if d.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Col)
		}
		var line []any
		for _, word := range [...][2]string{{"at", at}, {"source", strings.TrimSpace(d.Source)}, {"hint", d.Hint}} {
			if word[1] != "" {
				line = append(line, word[0], word[1])
			}
		}
		s.log.Warn(d.Message, line...)
	}
}
