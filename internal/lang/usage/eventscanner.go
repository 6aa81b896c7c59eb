package usage

import "bytes"

// maxEvent is the longest line, and the most data of one event, that is inspected.
// Longer ones are passed on unread.
const maxEvent = 256 << 10

// eventScanner parses server-sent events as the HTML standard does, from parts of any size, and
// inspects the data of each. Names and ids are ignored.
type eventScanner struct {
	inspect     func(data []byte)
	line        []byte // the current one, so far
	lineTooLong bool   // the current line is
	data        []byte // of the current event
	hasData     bool   // the current event has data
	dataTooLong bool   // the data of the current event is
	afterCR     bool   // the last byte was a CR: an LF that follows belongs to it
}

func (e *eventScanner) scan(p []byte) {
	if e.afterCR && len(p) > 0 {
		if e.afterCR = false; p[0] == '\n' {
			p = p[1:]
		}
	}
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			e.keep(p)
			return
		}
		e.keep(p[:end])
		e.endLine()
		if p[end] == '\r' {
			if end+1 == len(p) {
				e.afterCR = true
			} else if p[end+1] == '\n' {
				end++
			}
		}
		p = p[end+1:]
	}
}

// end inspects the last event even if the blank line after it is missing.
func (e *eventScanner) end() {
	e.endLine()
	e.dispatch()
}

func (e *eventScanner) keep(p []byte) {
	if e.lineTooLong || len(e.line)+len(p) > maxEvent {
		e.line, e.lineTooLong = e.line[:0], true
		return
	}
	e.line = append(e.line, p...)
}

func (e *eventScanner) endLine() {
	line, long := e.line, e.lineTooLong
	e.line, e.lineTooLong = e.line[:0], false
	switch data, ok := bytes.CutPrefix(line, []byte("data")); {
	case long:
		e.hasData, e.dataTooLong = true, true // the long line may have been data
	case len(line) == 0:
		e.dispatch()
	case ok && (len(data) == 0 || data[0] == ':'):
		if len(data) > 0 {
			data = bytes.TrimPrefix(data[1:], []byte(" "))
		}
		e.add(data)
	}
}

// add appends a line of data after a line feed.
func (e *eventScanner) add(data []byte) {
	if e.dataTooLong || len(e.data)+1+len(data) > maxEvent {
		e.hasData, e.dataTooLong = true, true
		return
	}
	if e.hasData {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, data...)
	e.hasData = true
}

func (e *eventScanner) dispatch() {
	if e.hasData && !e.dataTooLong {
		e.inspect(e.data)
	}
	e.data, e.hasData, e.dataTooLong = e.data[:0], false, false
}
