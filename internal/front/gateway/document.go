package gateway

// maxDocument is the longest JSON body that is looked into.
const maxDocument = 1 << 20

// document is a JSON body, kept until it is whole.
type document struct {
	look func(text []byte)
	text []byte
	over bool // too long, or looked at
}

func (d *document) see(p []byte) {
	switch {
	case d.over:
	case len(d.text)+len(p) > maxDocument:
		d.text, d.over = nil, true
	default:
		d.text = append(d.text, p...)
	}
}

func (d *document) end() {
	if !d.over {
		d.look(d.text)
		d.text, d.over = nil, true
	}
}
