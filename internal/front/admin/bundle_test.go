package admin

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/feed"
)

// The rules in force are served to those who follow, as the description says, in every state.
func TestBundle(t *testing.T) {
	d := newDesk(t, few, nil)
	problem(t, d.ask("GET", "/rules/bundle", ""), 404, "no rules here")
	f := feed.New(feed.Options{})
	d = newDesk(t, few, func(o *Options) { o.Feed = f })
	problem(t, d.ask("GET", "/rules/bundle", ""), 503, "no rules yet")
	b := &source.Bundle{Edition: source.Edition{Revision: "7", Author: "ann"}, Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte(few)}}
	if err := f.Set(b); err != nil {
		t.Fatal(err)
	}
	w := d.ask("GET", "/rules/bundle", "", header("Tidegate-Node", "edge-1"))
	got, err := feed.Decode(w.Body.Bytes())
	if w.Code != 200 || err != nil || got.Revision != "7" || string(got.Files["rules.yaml"]) != few {
		t.Errorf("%d %+v, %v", w.Code, got, err)
	}
	if w = d.ask("GET", "/rules/bundle", "", header("If-None-Match", w.Header().Get("ETag"))); w.Code != 304 {
		t.Errorf("again: %d", w.Code)
	}
	problem(t, d.ask("POST", "/rules/bundle", "{}"), 405, "GET")
	if all := f.Followers(); len(all) != 1 || all[0].Node != "edge-1" || !strings.HasPrefix(all[0].Address, "127.0.0.1:") {
		t.Errorf("%+v", all)
	}
}
