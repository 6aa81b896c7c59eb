package serve

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
	"tidegate.dev/tidegate/internal/telemetry/logsink"
)

// logs are the outputs of a server. Slow readers of a log do not block it.
type logs struct {
	log      *slog.Logger // about the process
	plain    bool         // lines are text for people, not JSON
	process  *logsink.Sink
	access   *logsink.Sink // about requests; may be the same as process; nil if it is off
	requests accesslog.Log
}

const (
	// accessLogDelay is how long a line of the access log waits to be written with others.
	accessLogDelay = 100 * time.Millisecond
	// readerTimeout is how long the shutdown waits for a reader that does not read.
	readerTimeout = time.Second
)

// openLogs opens the outputs that c names. On an error, the process log is usable.
func openLogs(c config.Log, stdout, stderr io.Writer) (l logs, err error) {
	l.plain = c.Format == config.Text
	l.process = logsink.New(stderr, logsink.Options{OnRecovery: func(dropped uint64, after time.Duration) {
		l.log.Warn("this log could not be written: lines are missing", "dropped", dropped, "for", after)
	}})
	l.log = slog.New(l.handler(l.process, c.Level))
	o := logsink.Options{
		Delay: accessLogDelay,
		OnTrouble: func(err error) {
			why := "its reader stands still"
			if err != nil {
				why = err.Error()
			}
			l.log.Warn("the access log cannot be written: lines that do not fit its buffer are dropped and counted", "log", c.Access, "err", why)
		},
		OnRecovery: func(dropped uint64, after time.Duration) {
			l.log.Warn("the access log is written again", "log", c.Access, "dropped", dropped, "after", after)
		},
	}
	switch c.Access {
	case config.Off:
		return l, nil
	case config.Stdout:
		l.access = logsink.New(stdout, o)
	case config.Stderr:
		l.access = l.process
	default:
		if l.access, err = logsink.Open(c.Access, o); err != nil {
			return l, err
		}
	}
	l.requests = accesslog.Log{To: l.access, Text: l.plain, Keys: keysWords[c.Keys]}
	return l, nil
}

var keysWords = map[string]accesslog.Keys{config.Hashed: accesslog.Hashed, config.Plain: accesslog.Plain, config.Off: accesslog.Off}

func (l *logs) handler(w io.Writer, level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnits}
	if l.plain {
		return slog.NewTextHandler(w, o)
	}
	return slog.NewJSONHandler(w, o)
}

// withUnits writes durations with units, not as a number of nanoseconds.
func withUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		d := a.Value.Duration()
		if d > time.Second {
			d = d.Round(time.Millisecond)
		}
		a.Value = slog.StringValue(d.String())
	}
	return a
}

// reopen opens the file of the access log again, since it may have been renamed.
func (l *logs) reopen() {
	if l.access == nil || l.access == l.process {
		return
	}
	if err := l.access.Reopen(); err != nil {
		l.log.Error("the access log could not be reopened: the previous file stays in use", "err", err)
	}
}

// out returns the writer for what is printed for people: the access log if that goes to stdout, so
// that all lines there stay in order.
func (s *server) out() io.Writer {
	if s.config.Log.Access == config.Stdout && s.access != nil {
		return s.access
	}
	return s.stdout
}

// stats returns the numbers for /metrics.
func (l *logs) stats() map[string]telemetry.LogStats {
	all := map[string]telemetry.LogStats{"process": telemetry.LogStats(l.process.Stats())}
	if l.access != nil && l.access != l.process {
		all["access"] = telemetry.LogStats(l.access.Stats())
	}
	return all
}

func (l *logs) close() {
	if l.access != nil && l.access != l.process {
		l.access.Close(readerTimeout)
	}
	if l.process != nil {
		l.process.Close(readerTimeout)
	}
}

// warn logs warnings: with carets for people, as single lines for machines.
func (s *server) warn(doubts diag.List) {
	if s.plain {
		var text strings.Builder
		doubts.Write(&text, false)
		_, _ = io.WriteString(s.process, text.String())
		return
	}
	for _, d := range doubts {
		at := d.File
		if d.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Col)
		}
		var attrs []any
		for _, word := range [...][2]string{{"at", at}, {"source", strings.TrimSpace(d.Source)}, {"hint", d.Hint}} {
			if word[1] != "" {
				attrs = append(attrs, word[0], word[1])
			}
		}
		s.log.Warn(d.Message, attrs...)
	}
}
