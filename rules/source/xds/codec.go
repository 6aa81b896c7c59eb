package xds

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is the codec of protobuf that checks the size of a message before decoding it: a message of
// 4 MiB could have 2 million resources.
type codec struct{}

// Name implements [google.golang.org/grpc/encoding.CodecV2].
func (codec) Name() string { return "proto" }

// Marshal implements [google.golang.org/grpc/encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", v)
	}
	b, err := proto.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

// Unmarshal implements [google.golang.org/grpc/encoding.CodecV2].
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", v)
	}
	b := data.Materialize()
	if err := new(survey).message(b, m.ProtoReflect().Descriptor(), 0); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}
