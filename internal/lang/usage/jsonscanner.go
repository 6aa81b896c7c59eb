package usage

// maxDocument is the longest JSON body that is inspected.
const maxDocument = 1 << 20

// jsonScanner collects a JSON body and inspects it when it is complete.
type jsonScanner struct {
	inspect func(text []byte)
	text    []byte
	done    bool // too long, or inspected already
}

func (d *jsonScanner) scan(p []byte) {
	switch {
	case d.done:
	case len(d.text)+len(p) > maxDocument:
		d.text, d.done = nil, true
	default:
		d.text = append(d.text, p...)
	}
}

func (d *jsonScanner) end() {
	if !d.done {
		d.inspect(d.text)
		d.text, d.done = nil, true
	}
}
