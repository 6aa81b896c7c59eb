package rulefile

import (
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// root reads the fields of a tree as those of a rule file, and checks its version. It returns false
// if this is no rule file.
func (d *decoder) root(t tree) (object, bool) {
	for _, f := range t.root.Fields {
		if f.Key.Value == "cases" {
			d.fail(f.Key.Pos, "a file with `cases` is a test of rules, not a rule file",
				"run it with `tidegate test`, and call it NAME_test.yaml: then a folder is read without it")
			return object{}, false
		}
	}
	o, ok := d.open(t.root, &rootPlace)
	if ok {
		d.version(o)
	}
	return o, ok
}

func (d *decoder) version(o object) {
	const hint = "write `version: 1` as the first line"
	n := d.need(o, "version", "every rule file", hint)
	if n == nil {
		return
	}
	if text, ok := d.text(n, "`version`", hint); ok && text != "1" {
		d.fail(n.Pos, "`version` is "+diag.Quote(text)+", and this program knows only 1", "write `version: 1`")
	}
}

// settings reads the fields that all files together may have only once, apart from `shed`.
func (d *decoder) settings(o object) {
	d.replaced = d.replacedSettings(o)
	if n := d.only(o, "defaults"); n != nil {
		d.defaults(n)
	}
	if n := d.only(o, "respond"); n != nil {
		d.file.Respond = d.respond(n, o.pos("respond"))
	}
	if n := d.only(o, "headers"); n != nil {
		d.headers(n, o.pos("headers"))
	}
	if n := d.only(o, "classes"); n != nil {
		d.classes(n)
	}
	if n := d.only(o, "instances"); n != nil {
		v, _ := d.whole(n, "`instances`", 1, 100_000, "instances: 3")
		d.file.Instances, d.file.InstancesPos = int(v), n.Pos
	}
}

// only returns the value of a setting of o. It returns nil if o does not have it, or another file has
// it already and this one does not replace it, which it reports.
func (d *decoder) only(o object, word string) *yamltree.Node {
	n := o.get(word)
	if n == nil {
		return nil
	}
	if !d.define("setting "+diag.Quote(word), o.key(word), slices.Contains(d.replaced, word), "keep one of the two: it holds for the rules of all files") {
		return nil
	}
	return n
}

func (d *decoder) defaults(n *yamltree.Node) {
	o, ok := d.open(n, &defaultsPlace)
	if !ok {
		return
	}
	d.fallback = d.policies(o, policies{})
	d.file.OnStoreFailure, d.file.OnFull, d.file.Consistency = d.fallback.onStoreFailure, d.fallback.onFull, d.fallback.consistency
	d.file.OnPartition = d.fallback.onPartition
}

// policies are the settings that a rule takes from `defaults` if it does not have them.
type policies struct {
	onStoreFailure           FailMode
	onFull                   tidegate.OnFull
	consistency, onPartition Word
	layers                   Layers
}

// policies reads policies from a rule or from `defaults`; p are those that hold for what o does not
// set.
func (d *decoder) policies(o object, p policies) policies {
	if n := o.get("on_store_failure"); n != nil {
		if text, ok := d.oneOf(n, "`on_store_failure`", "local", "allow", "deny"); ok {
			p.onStoreFailure = map[string]FailMode{"local": FailLocal, "allow": FailAllow, "deny": FailDeny}[text]
		}
	}
	if n := o.get("on_full"); n != nil {
		if text, ok := d.oneOf(n, "`on_full`", "evict", "refuse"); ok {
			p.onFull = map[string]tidegate.OnFull{"evict": tidegate.EvictLeast, "refuse": tidegate.RefuseNew}[text]
		}
	}
	if n := o.get("consistency"); n != nil {
		d.consistency(n, &p)
	}
	if n := o.get("on_partition"); n != nil {
		if text, ok := d.oneOf(n, "`on_partition`", "continue", "share"); ok {
			p.onPartition = Word{text, n.Pos}
		}
	}
	return p
}
