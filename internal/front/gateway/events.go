package gateway

import "bytes"

// maxEvent is the longest line, and the most data of one event, that is looked
// into. What is longer passes unseen.
const maxEvent = 256 << 10

// events reads a stream of server-sent events as the HTML standard does, in parts
// of any size. The data of each is looked at; names and ids are not.
type events struct {
	look func(data []byte)
	line []byte // what there is of the current one
	long bool   // the line is too long
	data []byte // of the current event
	some bool   // it has data
	huge bool   // it has too much
	cr   bool   // the last byte was one: a line feed now ends nothing
}

func (e *events) see(p []byte) {
	if e.cr && len(p) > 0 {
		if e.cr = false; p[0] == '\n' {
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
				e.cr = true
			} else if p[end+1] == '\n' {
				end++
			}
		}
		p = p[end+1:]
	}
}

// end looks at an event even if the blank line after it is missing.
func (e *events) end() {
	e.endLine()
	e.dispatch()
}

func (e *events) keep(p []byte) {
	if e.long || len(e.line)+len(p) > maxEvent {
		e.line, e.long = e.line[:0], true
		return
	}
	e.line = append(e.line, p...)
}

func (e *events) endLine() {
	line, long := e.line, e.long
	e.line, e.long = e.line[:0], false
	switch data, ok := bytes.CutPrefix(line, []byte("data")); {
	case long:
		e.some, e.huge = true, true // it may have been data
	case len(line) == 0:
		e.dispatch()
	case ok && (len(data) == 0 || data[0] == ':'):
		if len(data) > 0 {
			data = bytes.TrimPrefix(data[1:], []byte(" "))
		}
		e.add(data)
	}
}

// add joins lines of data by a line feed.
func (e *events) add(data []byte) {
	if e.huge || len(e.data)+1+len(data) > maxEvent {
		e.some, e.huge = true, true
		return
	}
	if e.some {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, data...)
	e.some = true
}

func (e *events) dispatch() {
	if e.some && !e.huge {
		e.look(e.data)
	}
	e.data, e.some, e.huge = e.data[:0], false, false
}
