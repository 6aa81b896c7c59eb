package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulediff"
	"tidegate.dev/tidegate/rules"
)

// gitTree is a treeReader of a git revision. Names are those of files in the checkout.
type gitTree struct {
	ctx    context.Context
	commit string
	top    string // of the checkout
	name   string // of the rules
}

// newGitTree finds a revision in the checkout that has the rules.
func newGitTree(ctx context.Context, ref, name string) (*gitTree, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return nil, fmt.Errorf("cannot read the rules: %w", err)
	}
	g := &gitTree{ctx: ctx, name: name, top: name}
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		g.top = filepath.Dir(name)
	}
	top, err := g.git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%s is not in a git checkout: %w", name, err)
	}
	g.top = filepath.FromSlash(strings.TrimSpace(string(top)))
	if strings.HasPrefix(ref, "-") {
		return nil, fmt.Errorf("%q is not a revision", ref)
	}
	commit, err := g.git("rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err != nil {
		hint := "write a branch, a tag or a commit that git knows here"
		if shallow, _ := g.git("rev-parse", "--is-shallow-repository"); strings.TrimSpace(string(shallow)) == "true" {
			hint = "this checkout is shallow and does not have it: fetch it (git fetch --depth=1 origin main:refs/remotes/origin/main), or check out with fetch-depth: 0"
		}
		return nil, fmt.Errorf("there is no revision %q here; %s", ref, hint)
	}
	g.commit = strings.TrimSpace(string(commit))
	return g, nil
}

// git runs git in the checkout.
func (g *gitTree) git(args ...string) ([]byte, error) {
	c := exec.CommandContext(g.ctx, "git", args...)
	c.Dir = g.top
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("git is not installed")
	case err != nil && problems.Len() > 0:
		return nil, errors.New(strings.TrimSpace(problems.String()))
	}
	return out, err
}

// path returns the name of a file within the checkout, as git writes it.
func (g *gitTree) path(name string) (string, error) {
	rel, err := filepath.Rel(g.top, name)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", &fs.PathError{Op: "read", Path: name, Err: errors.New("it is outside of the checkout")}
	}
	return filepath.ToSlash(rel), nil
}

// list returns the entries of a folder, by whole names; nothing for a file. The error is
// errNoBase if the revision has neither.
func (g *gitTree) list(name string) (files []string, isFolder bool, err error) {
	at, err := g.path(name)
	if err != nil {
		return nil, false, err
	}
	object := g.commit + ":" + at
	if at == "." {
		object = g.commit + ":"
	}
	kind, err := g.git("cat-file", "-t", object)
	if err != nil {
		return nil, false, errNoBase
	}
	if strings.TrimSpace(string(kind)) != "tree" {
		return nil, false, nil
	}
	out, err := g.git("ls-tree", "-z", "--name-only", object)
	if err != nil {
		return nil, true, err
	}
	for one := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		files = append(files, filepath.Join(name, one))
	}
	return files, true, nil
}

func (g *gitTree) readFile(name string) ([]byte, error) {
	at, err := g.path(name)
	if err != nil {
		return nil, err
	}
	text, err := g.git("cat-file", "blob", g.commit+":"+at)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return text, nil
}

func (g *gitTree) glob(pattern string) (found []string, err error) {
	files, _, err := g.list(filepath.Dir(pattern))
	if err != nil {
		return nil, nil // there is no such folder
	}
	for _, f := range files {
		ok, err := path.Match(filepath.Base(pattern), filepath.Base(f))
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, f)
		}
	}
	return found, nil
}

// compare compares the rules of the revision with those of now. If the revision has none, all
// are new. The plan is nil if its rules cannot be read.
func (g *gitTree) compare(ref string, now *ruleTree) (*rulesPlan, error) {
	old, err := readTree(g.name, g)
	switch {
	case errors.Is(err, errNoBase):
		return &rulesPlan{
			Old: ref, New: now.name, Counters: []rules.Change{},
			Changes: append([]rulediff.Change{}, rulediff.Compare(nil, now.file)...),
		}, nil
	case err != nil:
		return nil, fmt.Errorf("the rules of %s cannot be read, so nothing is compared: %w", ref, err)
	}
	p := comparePlan(old, now)
	p.Old = ref
	return &p, nil
}
