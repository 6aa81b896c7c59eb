package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"tidegate.dev/tidegate/internal/dev/archivetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

func open(t *testing.T, c Config) *Archive {
	t.Helper()
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	a.alive = 300 * time.Millisecond
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// tool is etcdctl, so to speak.
func tool(t *testing.T, e *testdep.EtcdServer) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	must[*clientv3.PutResponse](t)(c.Put(t.Context(), key, value))
}

func TestArchive(t *testing.T) {
	e := testdep.Etcd(t)
	archivetest.Run(t, archivetest.Server{
		Open: func() source.Archive { return open(t, Config{URL: "etcd://" + e.Addr + "/tidegate/rules"}) },
		Wipe: func() {
			must[*clientv3.DeleteResponse](t)(tool(t, e).Delete(t.Context(), "", clientv3.WithFromKey()))
		},
		Kill: e.Kill, Start: e.Start, Keeps: true,
	})
}

// Whatever writes to etcd changes the rules: files that are put and deleted are seen, and
// nothing of other prefixes is.
func TestFilesByHand(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r"})
	a.alive = time.Minute
	put(t, c, "/r/", "") // some tools make a key for the folder
	put(t, c, "/r/rules.yaml", "one")
	put(t, c, "/r2/rules.yaml", "of another")
	put(t, c, "/r.yaml", "of another")
	first, err := a.Next(t.Context(), "")
	if err != nil || len(first.Files) != 1 || string(first.Files["rules.yaml"]) != "one" || first.Author != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	have := first
	change := func(what string, do func(), want ...string) {
		t.Helper()
		got := make(chan *source.Bundle, 1)
		go func() {
			b, err := a.Next(t.Context(), have.Revision)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		do()
		b := <-got
		if b == nil || b.Revision == have.Revision || len(b.Files) != len(want) {
			t.Fatalf("%s: %+v, want %q", what, b, want)
		}
		for _, name := range want {
			if _, there := b.Files[name]; !there {
				t.Errorf("%s: there is no %s", what, name)
			}
		}
		have = b
	}
	change("a new file", func() { put(t, c, "/r/lists/a", "x") }, "rules.yaml", "lists/a")
	change("a changed file", func() { put(t, c, "/r/rules.yaml", "two") }, "rules.yaml", "lists/a")
	if number, _, _ := strings.Cut(have.Revision, "-"); number == "" || !strings.Contains(have.Revision, "-edited-") {
		t.Errorf("an edited set is called %s, which looks like one that was published", have.Revision)
	}
	change("the newest file, deleted", func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/rules.yaml")) }, "lists/a")
	change("and put again", func() { put(t, c, "/r/rules.yaml", "two") }, "rules.yaml", "lists/a")
	// The newest key is now another than the deleted one: only the set of keys tells.
	change("a file less", func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/lists/a")) }, "rules.yaml")

	// What was written by hand is kept as a revision when something is published, also if its
	// history is compacted.
	byHand := have
	revision, err := a.Publish(t.Context(), &source.Bundle{Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte("three"), "x": nil}}, byHand.Revision)
	if err != nil {
		t.Fatal(err)
	}
	now := must[*clientv3.GetResponse](t)(c.Get(t.Context(), "/r/rules.yaml"))
	must[*clientv3.CompactResponse](t)(c.Compact(t.Context(), now.Header.Revision))
	if b, err := a.Get(t.Context(), byHand.Revision); err != nil || string(b.Files["rules.yaml"]) != "two" || len(b.Files) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	all := must[[]source.Edition](t)(a.History(t.Context()))
	if len(all) != 2 || all[0].Revision != revision || all[1].Revision != byHand.Revision {
		t.Errorf("%+v", all)
	}
	// Writing what is there already changes nothing, and one can publish on top of it.
	put(t, c, "/r/rules.yaml", "three")
	if b, err := a.Next(t.Context(), ""); err != nil || b.Revision != revision {
		t.Errorf("%+v, %v; want %s", b, err, revision)
	}
	if all = must[[]source.Edition](t)(a.History(t.Context())); all[0].Revision != revision {
		t.Errorf("%+v", all)
	}
	again := &source.Bundle{Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte("four"), "x": nil}}
	if revision, err = a.Publish(t.Context(), again, revision); err != nil {
		t.Fatal(err)
	}
	// The main file stays the main file when others are edited.
	put(t, c, "/r/x", "edited")
	b, err := a.Next(t.Context(), revision)
	if err != nil || b.Main != "rules.yaml" || b.Revision == revision || b.Author != "" {
		t.Errorf("%+v, %v", b, err)
	}
	if all = must[[]source.Edition](t)(a.History(t.Context())); len(all) != 4 || all[0].Revision != b.Revision {
		t.Errorf("%+v", all)
	}
	// A publisher who did not see an edit or a deletion does not undo it.
	for what, do := range map[string]func(){
		"edit":     func() { put(t, c, "/r/x", "edited again") },
		"new file": func() { put(t, c, "/r/y", "") },
		"deletion": func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/x")) },
	} {
		b := must[*source.Bundle](t)(a.Next(t.Context(), ""))
		do()
		if _, err := a.Publish(t.Context(), first, b.Revision); !errors.Is(err, source.ErrConflict) {
			t.Errorf("after the %s: %v", what, err)
		}
	}
	put(t, c, "/r/../x", "")
	if b, err := a.Next(t.Context(), ""); err == nil || !strings.Contains(err.Error(), `"/r/../x"`) {
		t.Errorf("a key that leaves the set: %+v, %v", b, err)
	}
}

// Between the snapshot and the transaction others may write.
func TestCommitConflicts(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r"})
	for what, do := range map[string]func(){
		"edit":     func() { put(t, c, "/r/a", "edited") },
		"new file": func() { put(t, c, "/r/c", "") },
		"deletion": func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/b")) },
	} {
		put(t, c, "/r/a", "")
		put(t, c, "/r/b", "")
		s := must[*snapshot](t)(a.snapshot(t.Context()))
		do()
		if r, err := a.commit(t.Context(), s, []clientv3.Op{clientv3.OpPut("/r/a", "mine")}, nil, ""); !errors.Is(err, source.ErrConflict) {
			t.Errorf("after the %s: %q, %v", what, r, err)
		}
	}
}

// More files than one answer has, and a snapshot that is compacted away while it is read.
func TestSnapshotsOfManyKeys(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r"})
	for i := range 3 * pageSize {
		put(t, c, fmt.Sprintf("/r/%d.yaml", i), fmt.Sprint(i))
	}
	b, err := a.Next(t.Context(), "")
	if err != nil || len(b.Files) != 3*pageSize {
		t.Fatalf("%d files, %v", len(b.Files), err)
	}
	if again, err := a.Next(t.Context(), b.Revision); again != nil || err != nil {
		t.Errorf("nothing is new: %+v, %v", again, err)
	}
	stop, stopped := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // writes and compacts without end
		defer close(done)
		for i := 0; stop.Err() == nil; i++ {
			if p, err := c.Put(stop, "/r/0.yaml", fmt.Sprint(i)); err == nil {
				_, _ = c.Compact(stop, p.Header.Revision)
			}
		}
	}()
	good := 0
	for end := time.Now().Add(time.Minute); good < 5 && time.Now().Before(end); {
		b, err := a.Next(t.Context(), "")
		switch {
		case err == nil && len(b.Files) == 3*pageSize:
			good++
		case err == nil:
			t.Errorf("%d files", len(b.Files))
		case !strings.Contains(err.Error(), "compacted"):
			t.Error(err)
		}
	}
	stopped()
	<-done
	if good < 5 {
		t.Errorf("%d snapshots in a minute", good)
	}
	for i := range 1001 - 3*pageSize {
		put(t, c, fmt.Sprintf("/r/more%d.yaml", i), "")
	}
	if b, err := a.Next(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("one file too many: %+v, %v", b, err)
	}
}

// What does not fit one transaction is an error that says what to do; with other settings of
// the server it fits.
func TestLargeSets(t *testing.T) {
	large := func(n, size int) *source.Bundle {
		b := &source.Bundle{Files: make(map[string][]byte)}
		for i := range n {
			b.Files[fmt.Sprintf("%d.yaml", i)] = make([]byte, size)
			_, _ = rand.Read(b.Files[fmt.Sprintf("%d.yaml", i)])
		}
		return b
	}
	small := open(t, Config{URL: "etcd://" + testdep.Etcd(t).Addr + "/r"})
	for want, b := range map[string]*source.Bundle{"--max-txn-ops": large(200, 10), "--max-request-bytes": large(10, 200<<10)} {
		if r, err := small.Publish(t.Context(), b, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v; want %s in it", r, err, want)
		}
	}
	roomy := open(t, Config{URL: "etcd://" + testdep.Etcd(t, "--max-txn-ops", "2000", "--max-request-bytes", "33554432").Addr + "/r"})
	b := large(1000, 10<<10)
	revision, err := roomy.Publish(t.Context(), b, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := roomy.Next(t.Context(), ""); err != nil || got.Revision != revision || len(got.Files) != 1000 {
		t.Errorf("%v", err)
	}
}

// A user may read and not write; a password that was changed is read again.
func TestUsers(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	ctx := t.Context()
	put(t, c, "/r/rules.yaml", "one")
	must[*clientv3.AuthUserAddResponse](t)(c.UserAdd(ctx, "root", "root"))
	must[*clientv3.AuthRoleAddResponse](t)(c.RoleAdd(ctx, "root"))
	must[*clientv3.AuthUserGrantRoleResponse](t)(c.UserGrantRole(ctx, "root", "root"))
	must[*clientv3.AuthUserAddResponse](t)(c.UserAdd(ctx, "ann", "s@cret"))
	must[*clientv3.AuthRoleAddResponse](t)(c.RoleAdd(ctx, "reads"))
	must[*clientv3.AuthUserGrantRoleResponse](t)(c.UserGrantRole(ctx, "ann", "reads"))
	for _, prefix := range []string{"/r/", "/r.tidegate/"} {
		must[*clientv3.AuthRoleGrantPermissionResponse](t)(c.RoleGrantPermission(ctx, "reads", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermRead)))
	}
	must[*clientv3.AuthEnableResponse](t)(c.AuthEnable(ctx))

	if b, err := open(t, Config{URL: "etcd://" + e.Addr + "/r"}).Next(ctx, ""); err == nil || !strings.Contains(err.Error(), "wants a user") {
		t.Errorf("without a user: %+v, %v", b, err)
	}
	if b, err := open(t, Config{URL: "etcd://ann:wrong@" + e.Addr + "/r"}).Next(ctx, ""); err == nil || !strings.Contains(err.Error(), "password is wrong") || strings.Contains(err.Error(), ":wrong") {
		t.Errorf("with the wrong password: %+v, %v", b, err)
	}
	if b, err := open(t, Config{URL: "etcd://ann:s%40cret@" + e.Addr + "/r"}).Next(ctx, ""); err != nil || len(b.Files) != 1 {
		t.Errorf("with a password in the URL: %v", err)
	}
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("s@cret\n")
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r", Username: "ann", PasswordFile: file})
	b, err := a.Next(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Publish(ctx, b, b.Revision); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("who may only read: %v", err)
	}
	if _, err := open(t, Config{URL: "etcd://" + e.Addr + "/other", Username: "ann", PasswordFile: file}).Next(ctx, ""); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("another prefix: %v", err)
	}
	root := must[*clientv3.Client](t)(clientv3.New(clientv3.Config{Endpoints: []string{e.Addr}, Username: "root", Password: "root", Logger: zap.NewNop()}))
	defer root.Close()
	must[*clientv3.AuthUserChangePasswordResponse](t)(root.UserChangePassword(ctx, "ann", "other"))
	write("other")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err = a.Next(ctx, b.Revision); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("with another password: %v", err)
		}
	}
}

// TLS with a certificate of the own authority, and one of the client.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pair, pool := certificate(t, dir)
	e := testdep.Etcd(t, "--cert-file", filepath.Join(dir, "cert.pem"), "--key-file", filepath.Join(dir, "key.pem"),
		"--client-cert-auth", "--trusted-ca-file", filepath.Join(dir, "cert.pem"))
	a := open(t, Config{URL: "etcds://" + e.Addr + "/r", TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}})
	revision, err := a.Publish(t.Context(), &source.Bundle{Files: map[string][]byte{"rules.yaml": nil}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := a.Next(t.Context(), ""); err != nil || b.Revision != revision {
		t.Errorf("%+v, %v", b, err)
	}
	for what, c := range map[string]*tls.Config{"another authority": nil, "no certificate": {RootCAs: pool}} {
		if b, err := open(t, Config{URL: "etcds://" + e.Addr + "/r", TLS: c}).Next(t.Context(), ""); err == nil {
			t.Errorf("with %s: %+v", what, b)
		}
	}
}

// certificate makes one for 127.0.0.1, signed by itself.
func certificate(t *testing.T, dir string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	private := must[[]byte](t)(x509.MarshalECPrivateKey(key))
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": secret} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return must[tls.Certificate](t)(tls.X509KeyPair(cert, secret)), pool
}

func TestURLs(t *testing.T) {
	f := func(url, name, endpoints, wrong string) {
		t.Helper()
		got, err := read(url)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", url, err, wrong)
			}
			return
		}
		if err != nil || got.name != name || strings.Join(got.endpoints, " ") != endpoints || Check(url) != nil {
			t.Errorf("%s: %+v, %v", url, got, err)
		}
	}
	f("etcd://h/r", "etcd://h/r", "http://h:2379", "")
	f("etcds://ann:secret@a:1,b,[::1]/tidegate/rules/", "etcds://a:1,b,[::1]/tidegate/rules", "https://a:1 https://b:2379 https://[::1]:2379", "")
	f("etcd://ann@h/r", "etcd://h/r", "http://h:2379", "")
	f("http://h/r", "", "", "must begin with etcd://")
	f("etcd:///r", "", "", "names no host")
	f("etcd://a,/r", "", "", "names no host")
	f("etcd://:secret@h/r", "", "", "user or password")
	f("etcd://ann:secret%zz@h/r", "", "", "user or password")
	for _, url := range []string{"etcd://h", "etcd://h/", "etcd://h//", "etcd://h/a/../b", "etcd://h/a?x=secret", "etcd://h/a#b", "etcd://a:se/secret@h/r"} {
		f(url, "", "", "ends with the prefix")
	}
	if _, err := Open(Config{URL: "etcd://h/r", TLS: &tls.Config{}}); err == nil || !strings.Contains(err.Error(), "use etcds://") {
		t.Errorf("certificates without TLS: %v", err)
	}
}

func FuzzURL(f *testing.F) {
	f.Add("etcd://ann:hunter2@a,b/r")
	f.Fuzz(func(t *testing.T, text string) {
		const secret = "hunter2"
		got, err := read("etcd://ann:" + secret + "@" + text)
		if err == nil && (len(got.endpoints) == 0 || got.prefix == "") {
			t.Errorf("%q: %+v", text, got)
		}
		if !strings.Contains(text, secret) && (strings.Contains(got.name, secret) || err != nil && strings.Contains(err.Error(), secret)) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	})
}
