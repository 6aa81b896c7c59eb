package xds

import (
	"strconv"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"tidegate.dev/tidegate/internal/lang/yamltree"
	"tidegate.dev/tidegate/rules/envoy"
)

func TestText(t *testing.T) {
	c := &ratelimit.RateLimitConfig{Name: "n", Domain: "eg/http", Descriptors: []*ratelimit.RateLimitDescriptor{
		{
			Key: "route", Value: "r 1", DetailedMetric: true,
			Descriptors: []*ratelimit.RateLimitDescriptor{
				{Key: "ip", ShadowMode: true, RateLimit: &ratelimit.RateLimitPolicy{
					Unit: ratelimit.RateLimitUnit_WEEK, RequestsPerUnit: 7, Name: "a \"b\"\n", Replaces: []*ratelimit.RateLimitReplace{{Name: "x"}, {Name: "y"}},
				}},
			},
		},
		{Key: "free", RateLimit: &ratelimit.RateLimitPolicy{Unlimited: true}},
		{Key: "never", RateLimit: limit(0, ratelimit.RateLimitUnit_MONTH)},
	}}
	text, problems := write("f", c)
	want := `domain: "eg/http"
descriptors:
- key: route
  value: "r 1"
  detailed_metric: true
  descriptors:
  - key: ip
    rate_limit:
      unit: week
      requests_per_unit: 7
      name: "a \"b\"\x0a"
      replaces:
      - name: x
      - name: y
    shadow_mode: true
- key: free
  rate_limit:
    unlimited: true
- key: never
  rate_limit:
    unit: month
    requests_per_unit: 0
`
	if string(text) != want || len(problems) > 0 {
		t.Errorf("%v\n%s", problems, text)
	}
	if _, err := envoy.Load([]envoy.File{{Name: "f", Text: text}}, envoy.Options{}); err != nil {
		t.Error(err)
	}
}

// Everything that a server can send is in the text: read back, it is the same.
func FuzzText(f *testing.F) {
	add := func(c *ratelimit.RateLimitConfig) {
		b, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	add(config("a", "k", "l"))
	add(deep(30))
	odd := config("\x00\u2028\ufffd\ufeff é\"\\'", "- x", "a: b", "#", "\n", "true", "007", "\U0010ffff", "\r\n\t", " ", "𝔘")
	odd.Descriptors[0].Value, odd.Descriptors[1].RateLimit = "*", &ratelimit.RateLimitPolicy{Unlimited: true, Name: "~", Replaces: []*ratelimit.RateLimitReplace{{}, {Name: "|"}}}
	add(odd)
	odd.Descriptors[2].ProtoReflect().SetUnknown([]byte{0x78, 1})
	odd.Descriptors[3].RateLimit.Unit = -7
	add(odd)
	f.Fuzz(func(t *testing.T, b []byte) {
		bounds := &survey{}
		c, err := unpack(&anypb.Any{TypeUrl: configType, Value: b}, bounds)
		var direct ratelimit.RateLimitConfig
		if err != nil {
			if proto.Unmarshal(b, &direct) == nil && bounds.messages < maxMessages && !strings.Contains(err.Error(), "levels") {
				t.Fatalf("refused without need: %v", err)
			}
			return
		}
		_, _, err = compile([]*anypb.Any{{TypeUrl: configType, Value: b}}, envoy.Options{})
		if err != nil {
			refusal(err)
		}
		text, problems := write("f", c)
		if (len(problems) > 0) != hasUnknown(c.ProtoReflect()) {
			t.Fatalf("unknown fields: %v", problems)
		}
		if len(problems) > 0 && err == nil {
			t.Fatal("unknown fields were accepted")
		}
		for _, p := range problems {
			if p.Source == "" || p.Col > len([]rune(p.Source)) {
				t.Fatalf("a caret beside the text: %+v", p)
			}
		}
		if len(text) > yamltree.MaxSize {
			return
		}
		root, wrong := yamltree.Parse("f", text)
		if len(wrong) > 0 {
			t.Fatalf("%v\n%s", wrong, text)
		}
		got := readBack(t, root)
		got.Name = c.GetName()
		forget(c.ProtoReflect())
		if !proto.Equal(got, c) {
			t.Fatalf("got %v\nwant %v\n%s", got, c, text)
		}
	})
}

// readBack reads the text in the simplest way.
func readBack(t *testing.T, n *yamltree.Node) *ratelimit.RateLimitConfig {
	c := &ratelimit.RateLimitConfig{}
	for _, f := range n.Fields {
		switch f.Key.Value {
		case "domain":
			c.Domain = f.Value.Value
		case "descriptors":
			c.Descriptors = readDescriptors(t, f.Value)
		default:
			t.Fatal(f.Key.Value)
		}
	}
	return c
}

func readDescriptors(t *testing.T, n *yamltree.Node) (all []*ratelimit.RateLimitDescriptor) {
	for _, item := range n.Items {
		d := &ratelimit.RateLimitDescriptor{}
		all = append(all, d)
		for _, f := range item.Fields {
			switch v := f.Value; f.Key.Value {
			case "key":
				d.Key = v.Value
			case "value":
				d.Value = v.Value
			case "rate_limit":
				d.RateLimit = readPolicy(t, v)
			case "shadow_mode":
				d.ShadowMode = v.Value == "true"
			case "detailed_metric":
				d.DetailedMetric = v.Value == "true"
			case "descriptors":
				d.Descriptors = readDescriptors(t, v)
			default:
				t.Fatal(f.Key.Value)
			}
		}
	}
	return all
}

func readPolicy(t *testing.T, n *yamltree.Node) *ratelimit.RateLimitPolicy {
	r := &ratelimit.RateLimitPolicy{}
	for _, f := range n.Fields {
		switch v := f.Value; f.Key.Value {
		case "unit":
			if u, ok := ratelimit.RateLimitUnit_value[strings.ToUpper(v.Value)]; ok {
				r.Unit = ratelimit.RateLimitUnit(u)
			} else if u, err := strconv.ParseInt(v.Value, 10, 32); err == nil {
				r.Unit = ratelimit.RateLimitUnit(u)
			} else {
				t.Fatal(err)
			}
		case "requests_per_unit":
			u, err := strconv.ParseUint(v.Value, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			r.RequestsPerUnit = uint32(u)
		case "unlimited":
			r.Unlimited = v.Value == "true"
		case "name":
			r.Name = v.Value
		case "replaces":
			for _, item := range v.Items {
				r.Replaces = append(r.Replaces, &ratelimit.RateLimitReplace{Name: item.Fields[0].Value.Value})
			}
		default:
			t.Fatal(f.Key.Value)
		}
	}
	return r
}

// hasUnknown reports whether a message or one inside of it has unknown fields.
func hasUnknown(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	each(m, func(inner protoreflect.Message) { found = found || hasUnknown(inner) })
	return found
}

// forget drops unknown fields.
func forget(m protoreflect.Message) {
	m.SetUnknown(nil)
	each(m, forget)
}

func each(m protoreflect.Message, f func(protoreflect.Message)) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case d.Message() == nil:
		case d.IsList():
			for i := range v.List().Len() {
				f(v.List().Get(i).Message())
			}
		default:
			f(v.Message())
		}
		return true
	})
}
