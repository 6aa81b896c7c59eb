package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// checkout is what git says about a folder.
type checkout struct {
	commit          string // "" if it is not a checkout, or was changed since
	author, subject string
	dirty           bool // it was changed since the commit
}

const (
	gitTimeout = 10 * time.Second
	maxSubject = 200 // bytes of a subject that become a reason
)

// git runs git in the folder of the rules.
func git(ctx context.Context, name string, args ...string) (string, error) {
	dir := name
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		dir = filepath.Dir(name)
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	// Looking must not take the lock that somebody who pulls needs.
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return strings.TrimRight(out.String(), "\n"), err
}

// readCheckout asks git about the rules in name. Without git, or outside of a repository, it
// knows nothing.
func readCheckout(ctx context.Context, name string) (c checkout) {
	text, err := git(ctx, name, "log", "-1", "--format=%H%x00%an <%ae>%x00%s")
	fields := strings.Split(text, "\x00")
	if err != nil || len(fields) != 3 {
		return c
	}
	path := "."
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		path = filepath.Base(name)
	}
	changed, err := git(ctx, name, "status", "--porcelain", "--untracked-files=all", "--", path)
	if err != nil {
		return c
	}
	c.author, c.subject = fields[1], fields[2]
	if len(c.subject) > maxSubject {
		c.subject = strings.ToValidUTF8(c.subject[:maxSubject], "") + "…"
	}
	if c.dirty = changed != ""; !c.dirty {
		c.commit = fields[0]
	}
	return c
}

// gitBusy reports whether git is writing the files.
func gitBusy(ctx context.Context, name string) bool {
	lock, err := git(ctx, name, "rev-parse", "--path-format=absolute", "--git-path", "index.lock")
	if err != nil {
		return false
	}
	_, err = os.Stat(lock)
	return err == nil
}

// commitMark is how the reason of a revision names the commit that it is from.
var commitMark = regexp.MustCompile(`\[commit ([0-9a-f]{40,64})\]$`)

// commitOf returns the commit that a reason names, or "".
func commitOf(reason string) string {
	if m := commitMark.FindStringSubmatch(reason); m != nil {
		return m[1]
	}
	return ""
}

// reason returns why the rules of a checkout are published; "" without a commit.
func (c *checkout) reason() string {
	if c.commit == "" {
		return ""
	}
	return c.subject + " [commit " + c.commit + "]"
}

// descent is how two commits are related.
type descent int

const (
	unrelated descent = iota
	earlier           // the first comes before the second
	later
	unknownCommit // the checkout does not have the second
)

// relation returns how commit is related to other, which may not be in the checkout.
func relation(ctx context.Context, name, commit, other string) descent {
	if _, err := git(ctx, name, "cat-file", "-e", other+"^{commit}"); err != nil {
		return unknownCommit
	}
	before := func(a, b string) bool {
		_, err := git(ctx, name, "merge-base", "--is-ancestor", a, b)
		var exit *exec.ExitError
		return err == nil || !errors.As(err, &exit) // in doubt, it was
	}
	switch {
	case before(commit, other):
		return earlier
	case before(other, commit):
		return later
	}
	return unrelated
}
