//go:build linux

package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const repository = "../../.."

// rootfs is the file system of the image, and how its processes are started.
type rootfs struct {
	*testing.T
	dir      string
	env      []string
	uid, gid uint32
	command  []string // ENTRYPOINT and CMD
	probe    []string // HEALTHCHECK
}

// build does what the Dockerfile says. Where it copies what the first stage has built, that is
// built here; where it copies from the base image of that stage, this machine has the same.
func build(t *testing.T) *rootfs {
	t.Helper()
	defer syscall.Umask(syscall.Umask(0o022)) // as in the build stage
	stages := parseDockerfile(t, filepath.Join(repository, "Dockerfile"))
	if len(stages) != 2 || stages[0].name != "build" || stages[1].base != "scratch" {
		t.Fatalf("the stages are %+v", stages)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, in := range stages[0].all("RUN") {
		if in.text == "go mod download" {
			continue
		}
		cmd := exec.Command("sh", "-ec", strings.ReplaceAll(in.text, "/out/", out+"/"))
		cmd.Dir = repository
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("RUN %s: %v\n%s", in.text, err, output)
		}
	}
	final := stages[1]
	r := &rootfs{T: t, dir: filepath.Join(t.TempDir(), "root")}
	mkdirs(t, r.dir)
	for _, in := range final.all("COPY") {
		r.copy(in, out)
	}
	for _, in := range final.all("ENV") {
		r.env = append(r.env, in.args...)
	}
	user, group, _ := strings.Cut(final.only(t, "USER").text, ":")
	r.uid, r.gid = number(t, user), number(t, group)
	r.command = slices.Concat(final.only(t, "ENTRYPOINT").args, final.only(t, "CMD").args)
	r.probe = final.only(t, "HEALTHCHECK").args
	return r
}

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 0 {
		t.Fatalf("the user %q is not a number, or is root: %v", s, err)
	}
	return uint32(n)
}

// mkdirs makes a folder that everybody can enter, and those above it.
func mkdirs(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// copy does one COPY: a file, or what is in a folder.
func (r *rootfs) copy(in instruction, out string) {
	r.Helper()
	if len(in.args) != 2 {
		r.Fatalf("COPY %s: this test copies one source", in.text)
	}
	source, target := in.args[0], filepath.Join(r.dir, in.args[1])
	switch {
	case in.flags["from"] == "":
		r.notIgnored(source)
		source = filepath.Join(repository, source)
	case strings.HasPrefix(source, "/out/"):
		source = filepath.Join(out, strings.TrimPrefix(source, "/out/"))
	}
	info, err := os.Stat(source)
	if err != nil {
		r.Fatalf("COPY %s: %v", in.text, err)
	}
	if info.IsDir() {
		mkdirs(r.T, target)
		if err := os.CopyFS(target, os.DirFS(source)); err != nil {
			r.Fatal(err)
		}
	} else {
		raw, err := os.ReadFile(source)
		if err != nil {
			r.Fatal(err)
		}
		mkdirs(r.T, filepath.Dir(target))
		if err := os.WriteFile(target, raw, info.Mode().Perm()); err != nil {
			r.Fatal(err)
		}
	}
	if owner := in.flags["chown"]; owner != "" {
		user, group, _ := strings.Cut(owner, ":")
		if err := os.Chown(target, int(number(r.T, user)), int(number(r.T, group))); err != nil {
			r.Fatal(err)
		}
	}
}

// notIgnored fails if Docker would not send the file to the build.
func (r *rootfs) notIgnored(source string) {
	r.Helper()
	ignored, err := os.ReadFile(filepath.Join(repository, ".dockerignore"))
	if err != nil {
		r.Fatal(err)
	}
	for _, name := range strings.Fields(string(ignored)) {
		if source == name || strings.HasPrefix(source, name+"/") {
			r.Fatalf(".dockerignore has %s, so COPY %s finds nothing", name, source)
		}
	}
}

// run returns a command inside the file system, as its user, with its environment and more.
func (r *rootfs) run(env []string, command ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	output = new(bytes.Buffer)
	cmd = &exec.Cmd{
		Path: command[0], Args: command, Dir: "/",
		Env:         slices.Concat(r.env, env),
		Stdout:      output,
		Stderr:      output,
		SysProcAttr: &syscall.SysProcAttr{Chroot: r.dir, Credential: &syscall.Credential{Uid: r.uid, Gid: r.gid}},
	}
	return cmd, output
}
