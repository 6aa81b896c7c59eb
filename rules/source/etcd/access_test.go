package etcd

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

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
	if !testdep.Await(time.Minute, func() bool { _, err = a.Next(ctx, b.Revision); return err == nil }) {
		t.Fatalf("with another password: %v", err)
	}
}

// TLS with a certificate of the own authority, and one of the client.
func TestTLS(t *testing.T) {
	pair := testdep.NewCertificate(t, "test", nil)
	pool := pair.Pool()
	cert, key := pair.Files(t, t.TempDir())
	e := testdep.Etcd(t, "--cert-file", cert, "--key-file", key, "--client-cert-auth", "--trusted-ca-file", cert)
	a := open(t, Config{URL: "etcds://" + e.Addr + "/r", TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair.TLS()}}})
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
