package origins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules/source"
)

// Sources that keep revisions are opened by their URLs, and certificates are only for those
// that use TLS.
func TestOpenArchives(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.pem")
	if err := os.WriteFile(bad, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(url string, o Options, name, wrong string) {
		t.Helper()
		origin, err := Open(url, o)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", url, err, wrong)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", url, err)
			return
		}
		defer origin.Close()
		if _, ok := origin.(source.Archive); !ok || origin.Name() != name {
			t.Errorf("%s is %T, called %s", url, origin, origin.Name())
		}
	}
	f("redis://ann:secret@h#edge", Options{CA: bad}, "redis://h#edge", "")
	f("valkey://h", Options{}, "valkey://h#rules", "")
	f("redis-cluster://a,b", Options{}, "redis-cluster://a,b#rules", "")
	f("redis-sentinel://a,b/m", Options{}, "redis-sentinel://a,b/m#rules", "")
	f("unix:///run/redis.sock", Options{}, "unix:///run/redis.sock#rules", "")
	f("rediss://h", Options{}, "rediss://h#rules", "")
	f("etcd://h/r", Options{CA: bad}, "etcd://h/r", "")
	f("etcds://h/r", Options{}, "etcds://h/r", "")
	for _, url := range []string{"rediss://h", "valkeys://h", "rediss-cluster://a,b", "rediss-sentinel://a/m", "etcds://h/r"} {
		f(url, Options{CA: bad}, "", "has no certificate")
		f(url, Options{CA: filepath.Join(dir, "none")}, "", "no such file")
		f(url, Options{Cert: bad, Key: bad}, "", "the certificate for the source")
	}
	f("redis://:secret@h/x", Options{}, "", "want a number")
	f("etcd://ann:secret@h", Options{}, "", "ends with the prefix")
	f("ftp://secret@h", Options{}, "", "cannot come from ftp://")
}
