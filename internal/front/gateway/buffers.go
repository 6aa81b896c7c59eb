package gateway

import "sync"

// bufferSize is how much of a response is copied at a time.
const bufferSize = 32 << 10

// buffers pools buffers. It pools arrays, since pooling a slice would allocate its header.
type buffers struct{ pool sync.Pool }

var responseBuffers buffers

func (b *buffers) Get() []byte {
	if held, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return held[:]
	}
	return new([bufferSize]byte)[:]
}

func (b *buffers) Put(buf []byte) { b.pool.Put((*[bufferSize]byte)(buf)) }
