package rls

import (
	"google.golang.org/protobuf/types/known/structpb"
)

// metadata returns the dynamic metadata for the next filters of Envoy: that of the rules that have
// admitted and, by MetadataOfRequest, what was asked. nil means none.
func (s *Server) metadata(c *call) *structpb.Struct {
	fields := map[string]any{}
	if told := c.metadataOfRules(); len(told) > 0 {
		fields["metadata"] = told
	}
	if s.o.Metadata == MetadataOfRequest {
		fields["domain"] = c.domain
		fields["descriptors"] = c.describeAll()
		if c.hits != 0 {
			fields["hitsAddend"] = float64(c.hits)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	told, err := structpb.NewStruct(fields)
	if err != nil { // a value of a request is not UTF-8, which gRPC has refused
		s.o.Log.Error("dynamic metadata cannot be written", "err", err)
		return nil
	}
	return told
}

// metadataOfRules joins the metadata of the rules that have not refused. Where two differ, that of the
// first descriptor counts.
func (c *call) metadataOfRules() (told map[string]any) {
	for i := range c.descriptors {
		d := &c.descriptors[i]
		if d.rule == nil || d.replaced || d.rule.Unlimited || d.refused || len(d.rule.Metadata) == 0 {
			continue
		}
		if told == nil {
			told = make(map[string]any, len(d.rule.Metadata))
		}
		merge(told, d.rule.Metadata)
	}
	return told
}

// merge adds to dst what it does not have. The maps of from are not changed, nor kept.
func merge(dst, from map[string]any) {
	for name, value := range from {
		inner, isMap := value.(map[string]any)
		before, has := dst[name]
		switch {
		case !has && isMap:
			own := make(map[string]any, len(inner))
			merge(own, inner)
			dst[name] = own
		case !has:
			dst[name] = value
		case isMap:
			if own, ok := before.(map[string]any); ok {
				merge(own, inner)
			}
		}
	}
}

// describeAll returns the descriptors of a call as metadata.
func (c *call) describeAll() []any {
	all := make([]any, len(c.descriptors))
	for i := range c.descriptors {
		d := &c.descriptors[i]
		entries := make([]any, len(d.entries))
		for j, e := range d.entries {
			entries[j] = e.Key + "=" + e.Value
		}
		one := map[string]any{"entries": entries}
		if d.limit.set && i < len(c.request().GetDescriptors()) {
			one["limit"] = c.request().GetDescriptors()[i].GetLimit().String()
		}
		if d.hitsSet {
			one["hitsAddend"] = float64(d.hits)
		}
		all[i] = one
	}
	return all
}
