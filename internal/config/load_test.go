package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// What a golden file cannot hold.
func TestLoadTells(t *testing.T) {
	f := func(variable, stat, want string) {
		t.Helper()
		o := Options{Environ: []string{variable}, Stat: everywhere, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
		if stat != "" {
			o.Stat = func(string) (fs.FileInfo, error) {
				return nil, &fs.PathError{Op: "stat", Path: "x", Err: errors.New(stat)}
			}
		}
		c, problems := Load(o)
		if c != nil || !strings.Contains(problems.Error(), want) {
			t.Errorf("%q: got %+v and\n%v\nwant %q", variable, c, problems, want)
		}
	}
	f("TIDEGATE_TRUST_JWT_ISSUER=a\x00b", "", "`trust.jwt.issuer` has a control character: \"a\\x00b\"")
	f("TIDEGATE_TRUST_JWT_ISSUER=\xff", "", "`trust.jwt.issuer` is not in UTF-8")
	f("TIDEGATE_TLS_CERT=-----BEGIN CERTIFICATE-----\nMIIB", "", "`tls.cert` is a key itself")
	f("TIDEGATE_RULES=rules.yaml", "permission denied", "`rules` leads to what cannot be read: `rules.yaml`: permission denied")
	f("TIDEGATE_LISTEN_GATEWAY=unix:/"+strings.Repeat("x", 107), "", "is a longer path than a socket can have: `unix:/xxxxx")
	f("TIDEGATE_LOG_LEVEL="+strings.Repeat("é", 100), "", "cannot be `"+strings.Repeat("é", 80)+"…`")
}

// A password is not shown, however long the URL is and wherever it is told.
func TestSecretsAreNotTold(t *testing.T) {
	secret := strings.Repeat("s3cret", 30)
	for _, value := range []string{"http://u:" + secret + "@h", "u:" + secret + "@h", "ftp://" + secret + "@h/x y@z", "http://h,http://:" + secret + "@h?q"} {
		file := "upstreams: [\"" + value + "\"]\nrules: \"" + value + "\"\nlisten: { gateway: \"" + value + "\" }\nlog: { level: \"" + value + "\" }\n"
		flags := parseFlags(t, "--upstreams="+value, "--store="+value, "--drain="+value, "--limits.body="+value, "--trust.proxies="+value, "--health.path="+value)
		_, problems := Load(Options{
			Environ: []string{}, Flags: flags, Stat: everywhere, ReadFile: func(string) ([]byte, error) { return []byte(file), nil },
		})
		text, err := json.Marshal(problems)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) < 8 || strings.Contains(problems.Error()+string(text), "s3cret") {
			t.Errorf("%d problems:\n%v\n%s", len(problems), problems, text)
		}
	}
}

// An error that hides nothing but a name: no *fs.PathError.
func TestReason(t *testing.T) {
	if got := diag.Reason(errors.New("gone")); got != "gone" {
		t.Errorf("got %q", got)
	}
}

// The file is read once, and its folder is where its paths begin, also when it
// is reached from elsewhere.
func TestPathsOfTheFile(t *testing.T) {
	reads := 0
	c, problems := Load(Options{
		File: "/etc/tidegate/main.yaml", Environ: []string{"TIDEGATE_TLS_KEY=key.pem"}, Stat: everywhere,
		ReadFile: func(string) ([]byte, error) {
			reads++
			return []byte("rules: ../rules\ntls: { cert: cert.pem }\nlog: { access: /var/log/a.log }\n"), nil
		},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := "/etc/rules /etc/tidegate/cert.pem key.pem /var/log/a.log"
	if got := strings.Join([]string{c.Rules[0], c.TLS.Cert, c.TLS.Key, c.Log.Access}, " "); got != want || reads != 1 {
		t.Errorf("got %s after %d reads, want %s", got, reads, want)
	}
}
