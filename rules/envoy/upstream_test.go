package envoy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configsVariable names a folder with configurations of envoyproxy/ratelimit, which are not
// part of this repository: its tests, its example, and the blocks of its README.
const configsVariable = "TIDEGATE_ENVOY_CONFIGS"

// loaded and refused are all files of the folder, by what has to become of them alone.
var (
	loaded = strings.Fields(`
readme/example01 readme/example02 readme/example03 readme/example04a readme/example04b readme/example05 readme/example06
readme/example07 readme/example08 readme/example09a readme/example09b readme/example09c readme/example10a readme/example10b
readme/example11a readme/example11b upstream-example/config upstream-example/example upstream-integration/another
upstream-integration/basic upstream-integration/reload upstream-integration/share_threshold upstream-test/basic_config
upstream-test/duplicate_domain upstream-test/merge_domain_key1 upstream-test/merge_domain_key2 upstream-test/metadata
upstream-test/shadowmode_config upstream-test/share_threshold upstream-test/wildcard`)
	refused = strings.Fields(`
upstream-test/bad_limit_unit upstream-test/bad_yaml upstream-test/duplicate_key upstream-test/empty_domain
upstream-test/empty_key upstream-test/misspelled_key upstream-test/misspelled_key2 upstream-test/non_map_list
upstream-test/non_string_key upstream-test/replaces_empty upstream-test/replaces_self upstream-test/unlimited_with_unit`)
)

// upstream reads files of the folder.
func upstream(t *testing.T, o Options, names ...string) (*Set, error) {
	t.Helper()
	dir := os.Getenv(configsVariable)
	if dir == "" {
		t.Skip("set " + configsVariable + " to a folder with upstream's configurations")
	}
	var files []File
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{name + ".yaml", text})
	}
	return Load(files, o)
}

func TestUpstreamFiles(t *testing.T) {
	for _, name := range loaded {
		if set, err := upstream(t, Options{}, name); err != nil || len(set.Domains()) != 1 {
			t.Errorf("%s does not load: %v", name, err)
		}
	}
	for _, name := range refused {
		_, err := upstream(t, Options{}, name)
		var problems Problems
		if !errors.As(err, &problems) || problems[0].Line == 0 || problems[0].Hint == "" {
			t.Errorf("%s is not refused with a line and a hint: %v", name, err)
		}
	}
	all, err := filepath.Glob(filepath.Join(os.Getenv(configsVariable), "*", "*.yaml"))
	if err != nil || len(all) != len(loaded)+len(refused) {
		t.Errorf("there are %d files, and %d are known (%v)", len(all), len(loaded)+len(refused), err)
	}
}

func TestUpstreamFilesTogether(t *testing.T) {
	f := func(merge bool, want string, names ...string) *Set {
		t.Helper()
		set, err := upstream(t, Options{MergeDomains: merge}, names...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: got %v, want %q", names, err, want)
		}
		return set
	}
	const basic, bare, one, two = "upstream-test/basic_config", "upstream-test/duplicate_domain", "upstream-test/merge_domain_key1", "upstream-test/merge_domain_key2"
	f(false, "already at", basic, bare)
	f(true, "", basic, bare)
	f(false, "already at", one, two)
	d := f(true, "", one, two).Domain("test-domain")
	if a, b := d.Find(entries("key1=value1")), d.Find(entries("key2=value2")); a == nil || b == nil || a.RequestsPerUnit != 10 || b.RequestsPerUnit != 20 {
		t.Errorf("merged: %+v and %+v", a, b)
	}
	f(true, "test-domain.key1_value1", one, one)
	for _, bad := range refused {
		if set, err := upstream(t, Options{MergeDomains: true}, "readme/example01", bad); err == nil || set != nil {
			t.Errorf("with %s: a part is used", bad)
		}
	}
}

func TestUpstreamMatches(t *testing.T) {
	f := func(name, descriptor string, requests uint32, unit Unit, metric string) {
		t.Helper()
		set, err := upstream(t, Options{}, name)
		if err != nil {
			t.Fatal(err)
		}
		e := entries(descriptor)
		r := set.Domain(set.Domains()[0]).Find(e)
		switch {
		case r == nil && unit != NoUnit:
			t.Errorf("%s: %s has no limit, want %d/%v", name, descriptor, requests, unit)
		case r != nil && (r.Unit != unit || r.RequestsPerUnit != requests):
			t.Errorf("%s: %s has %d/%v, want %d/%v", name, descriptor, r.RequestsPerUnit, r.Unit, requests, unit)
		case r != nil && metric != "" && r.Metric(e) != metric:
			t.Errorf("%s: %s is called %s, want %s", name, descriptor, r.Metric(e), metric)
		}
	}
	const basic, wild = "upstream-test/basic_config", "upstream-test/wildcard"
	for _, descriptor := range []string{"key1=something", "key1=value1", "key2=value2, subkey=subvalue", "key5=value5, subkey5=subvalue", "key2=value3"} {
		f(basic, descriptor, 0, NoUnit, "")
	}
	f(basic, "key1=value1, subkey1=something", 5, Second, "test-domain.key1_value1.subkey1")
	f(basic, "key1=value1, subkey1=subvalue1", 10, Second, "test-domain.key1_value1.subkey1_subvalue1")
	f(basic, "key2=something", 20, Minute, "test-domain.key2")
	f(basic, "key2=value2", 30, Minute, "test-domain.key2_value2")
	f(basic, "key3=foo", 1, Hour, "test-domain.key3")
	f(basic, "key4=foo", 1, Day, "test-domain.key4")
	f(basic, "key7=unspecified_value", 70, Minute, "test-domain.key7_unspecified_value")
	f("readme/example04a", "key=value, subkey=x", 0, NoUnit, "")
	f("readme/example08", "key1=other", 10, Minute, "example8.key1_other")
	f("readme/example08", "key1=value1", 20, Minute, "example8.key1_value1")
	f("readme/example09b", "path=/api/123/action", 20, Minute, "example9.path_/api/*/action")
	f("readme/example09b", "path=/api/123/other", 0, NoUnit, "")
	f("readme/example09c", "route=/api/v1/resource/123/action", 20, Minute, "")
	f("readme/example09c", "route=/api/v1/resource/123", 0, NoUnit, "")
	f("readme/example10a", "route=api, http_method=GET, subject_id=7", 60, Minute, "example10.route_api.http_method_GET.subject_id")
	f("readme/example10b", "user=alice, action=readfile, resource=x", 100, Minute, "example10_wildcard.user_alice.action_readfile.resource")
	f("readme/example11b", "route=api/v1, method=GET", 60, Minute, "example11_metrics.route_api/*.method")
	for _, descriptor := range []string{"wild=foo1", "wild=foo2", "midWild=barab", "midWild=bar123b", "midWild=barb", "nestedWild=val1, wild=goo2"} {
		f(wild, descriptor, 20, Minute, "")
	}
	f(wild, "multiWild=foo123bar456baz", 10, Minute, "")
	f(wild, "multiWild=foobarbaz", 10, Minute, "")
	for _, descriptor := range []string{"wild=bar", "noWild=foo1", "midWild=bara", "midWild=xbarb", "multiWild=foo123baz", "multiWild=bar456baz"} {
		f(wild, descriptor, 0, NoUnit, "")
	}
	set, err := upstream(t, Options{}, basic)
	if err != nil {
		t.Fatal(err)
	}
	d := set.Domain("test-domain")
	if d.Find(entries("key4=foo")).Name != "key4_rate_limit" || !d.Find(entries("key6=foo")).Unlimited || set.Domain("other") != nil {
		t.Error("a name, unlimited or an unknown domain is not as it should be")
	}
	if r, err := d.Override(10, Day); err != nil || r.RequestsPerUnit != 10 || r.Unit != Day || r.Shadow {
		t.Errorf("an override is %+v, %v", r, err)
	}
}
