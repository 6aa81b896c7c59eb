package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// newCertificate makes one of 127.0.0.1, by the name of its holder.
func newCertificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	made := testdep.NewCertificate(t, name, nil)
	return made.PEM(), made.KeyPEM(t)
}

func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	files := [2]string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	write := func(i int, text string) {
		t.Helper()
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := newCertificate(t, "first")
	write(0, cert)
	write(1, key)
	c, err := loadCertificate("the gateway", config.KeyPair{Cert: files[0], Key: files[1]}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	want := func(name string) {
		t.Helper()
		c.disk.looked = time.Time{} // as if it were long ago
		got, err := c.get(nil)
		if err != nil || got.Leaf.Subject.CommonName != name {
			t.Errorf("got the certificate of %s, want that of %s (%v)", got.Leaf.Subject.CommonName, name, err)
		}
	}
	want("first")
	cert, key = newCertificate(t, "second")
	write(0, cert)
	want("first") // the key does not fit yet
	write(1, key)
	want("second")
	write(1, "no key")
	want("second")
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	want("second")
	cert, key = newCertificate(t, "third")
	write(0, cert)
	write(1, key)
	want("third")
	if _, err := loadCertificate("the gateway", config.KeyPair{Cert: files[0], Key: filepath.Join(dir, "none")}, nil); err == nil {
		t.Error("a certificate without a key is taken")
	}
}
