package envoyfiles

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const folder = "../../../deploy/envoy/"

// documents returns the documents of a file as JSON.
func documents(t *testing.T, name string) (all [][]byte) {
	t.Helper()
	text, err := os.ReadFile(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n---\n") {
		root, problems := yamltree.Parse(name, []byte(part))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		b, err := json.Marshal(root.Plain(inJSON))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// inJSON is a scalar, or nothing, for encoding/json.
func inJSON(n *yamltree.Node) any {
	switch {
	case n.Kind == yamltree.Null:
		return nil
	case n.Quoted:
	case n.Value == "true" || n.Value == "false":
		return n.Value == "true"
	case number.MatchString(n.Value):
		return json.Number(n.Value)
	}
	return n.Value
}

// decode reads JSON into a message, refuses unknown fields, and validates it with all
// messages that are packed in it. partial: it is merged into another, and only what is
// packed in it is whole.
func decode(t *testing.T, what string, b []byte, m proto.Message, partial bool) {
	t.Helper()
	if err := protojson.Unmarshal(b, m); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !partial {
		validate(t, what, m)
	}
	packed(t, what, m.ProtoReflect())
}

func validate(t *testing.T, what string, m proto.Message) {
	t.Helper()
	v, ok := m.(interface{ ValidateAll() error })
	if !ok {
		t.Fatalf("%s: %T cannot be validated", what, m)
	}
	if err := v.ValidateAll(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// packed validates the messages in every Any.
func packed(t *testing.T, what string, m protoreflect.Message) {
	t.Helper()
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		validate(t, what+" "+a.GetTypeUrl(), inner)
		packed(t, what, inner.ProtoReflect())
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				packed(t, what, v.Message())
				return true
			})
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				packed(t, what, v.List().Get(i).Message())
			}
		default:
			packed(t, what, v.Message())
		}
		return true
	})
}

// find returns all messages of a type in m, packed ones included.
func find[M proto.Message](t *testing.T, m protoreflect.Message) (all []M) {
	t.Helper()
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		return find[M](t, inner.ProtoReflect())
	}
	if found, ok := m.Interface().(M); ok {
		all = append(all, found)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				all = append(all, find[M](t, v.Message())...)
				return true
			})
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				all = append(all, find[M](t, v.List().Get(i).Message())...)
			}
		default:
			all = append(all, find[M](t, v.Message())...)
		}
		return true
	})
	return all
}
