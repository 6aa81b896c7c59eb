package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Wherever a secret is written by mistake, or rightly into a URL, and whatever else is wrong on its
// line, it is in no message and in no setting that is shown.
func TestSecretsAreNowhere(t *testing.T) {
	testdep.SkipUnderRace(t)
	secrets := []string{"s3cret", "s3cret s3cret", "a@s3cret", `s3cret'x`, "s3cret%20", "s3cret#x", "s3cret:x"}
	urls := []string{
		"redis://:%s@h", "rediss://ann:%s@h:6380/1?prefix=x", "redis-cluster://:%s@a,b,c", "redis-sentinel://:%s@a,b/m",
		"redis-sentinel://a,b/m?sentinel_user=x&sentinel_password=%s", "unix://:%s@/run/redis.sock",
	}
	fields := []string{"admin.token", "store.password", "check.token", "trust.jwt.secret", "rules_source.password", "api_token", "my_password", "client_secret"}
	f := func(file string, env []string, args ...string) {
		t.Helper()
		c, problems := Load(Options{
			File: defaultFile, Environ: append([]string{}, env...), Flags: parseFlags(t, args...), Stat: everywhere,
			ReadFile: func(string) ([]byte, error) { return []byte(file), nil },
		})
		shown, err := json.Marshal(problems)
		if err != nil {
			t.Fatal(err)
		}
		all := bytes.NewBuffer(shown)
		problems.Write(all, false)
		if c != nil {
			if err := c.Write(all); err != nil {
				t.Fatal(err)
			}
			settings, err := json.Marshal(c.Settings())
			if err != nil {
				t.Fatal(err)
			}
			all.Write(settings)
		}
		if strings.Contains(all.String(), "s3cret") {
			t.Errorf("%s%v %v shows\n%s", file, env, args, all)
		}
	}
	for _, secret := range secrets {
		for _, url := range urls {
			url = fmt.Sprintf(url, secret)
			f("store: { redis: \""+url+"\" }\n", nil)
			f("store: { redis: \""+url+"\", unknown: 1, deadline: never }\n", nil)
			f("store: { redis: \""+url+"\n", nil)
			f("store: { redis: \""+url+"\", redis: \""+url+"\" }\n", nil)
			f("store: { shards: [ { name: a, url: \""+url+"\", other: 1 }, { name: a, url: \""+url+"\" } ] }\n", nil)
			f("#", []string{"TIDEGATE_STORE_REDIS=" + url, "TIDEGATE_STORE=memory", "TIDEGATE_DRAIN=never"})
			f("#", nil, "--store.redis="+url, "--store.redis="+url)
			f("#", nil, "--store.shards=a="+url+",b="+url)
			f("#", nil, "--rules="+url+"#rules", "--drain=never")
			f("#", nil, "--store.redis="+url, "--store.regions=us="+url)
		}
		for _, name := range []string{"private_token", "X-Amz-Signature", "sig", "access-token", "client_secret"} {
			url := "https://config.example.com/rules.yaml?ref=main&" + name + "=" + secret
			f("rules: \""+url+"\"\n", nil)
			f("rules: [ \""+url+"\", \""+url+"\" ]\n", nil)
			f("{ rules: \""+url+"\", unknown: 1 }\n", nil)
			f("#", []string{"TIDEGATE_RULES=" + url, "TIDEGATE_DRAIN=never"})
			f("#", nil, "--rules="+url, "--rules="+url)
			f("#", nil, "--rules=ftp"+url[len("https"):])
		}
		for _, field := range fields {
			words := strings.Split(field, ".")
			open, leaf := strings.Join(words[:len(words)-1], ": { "), words[len(words)-1]
			end := strings.Repeat(" }", len(words)-1)
			if open != "" {
				open += ": { "
			}
			f(open+leaf+": \""+secret+"\""+end+"\n", nil)
			f(open+leaf+": \""+secret+"\n", nil)                                    // the quote is not closed
			f(open+leaf+": \""+secret+"\", "+leaf+": \""+secret+"\""+end+"\n", nil) // twice
			f(open+leaf+": \""+secret+"\", unknown: 1"+end+"\n", nil)
			f(open+leaf+": [\""+secret+"\", {}"+end+"\n", nil)
			f(leaf+": "+secret+": x\n", nil)
			f(leaf+": *"+secret+"\n", nil)
			f("#", []string{"TIDEGATE_" + strings.ToUpper(strings.ReplaceAll(field, ".", "_")) + "=" + secret})
		}
	}
}

// What is not shown still tells two sources from each other.
func TestSourcesDifferInTheirQueries(t *testing.T) {
	f := func(a, b string, twice bool) {
		t.Helper()
		_, problems := Load(Options{Environ: []string{}, Flags: parseFlags(t, "--rules="+a+","+b), Stat: everywhere, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }})
		if strings.Contains(problems.Error(), "is given twice") != twice {
			t.Errorf("%s and %s: %v", a, b, problems)
		}
	}
	f("https://h/r.yaml?layer=a", "https://h/r.yaml?layer=b", false)
	f("https://h/r.yaml?layer=a", "https://h/r.yaml?layer=a", true)
	f("redis://:a@h#x", "redis://:b@h#x", false)
	f("redis://:a@h#x", "redis://:a@h#x", true)
	f("x.yaml", "./x.yaml", true)
}
