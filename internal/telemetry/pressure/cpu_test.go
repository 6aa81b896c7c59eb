package pressure

import (
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// computer is a machine whose counters are set by hand.
type computer struct {
	files fstest.MapFS
	spent time.Duration // by the process; negative: not known
}

func (c *computer) Open(name string) (fs.File, error) { return c.files.Open(name) }

func (c *computer) write(name, text string) { c.files[name] = &fstest.MapFile{Data: []byte(text)} }

func (c *computer) process() (time.Duration, bool) { return c.spent, c.spent >= 0 }

func newComputer() *computer { return &computer{fstest.MapFS{}, -1} }

// after a minute, so that what was before is forgotten, cpu is that share; -1 means not
// known.
func (c *computer) wants(t *testing.T, s *Signals, want float64) {
	t.Helper()
	time.Sleep(time.Minute)
	got, ok := s.Signal(CPU)
	if !ok {
		got = -1
	}
	if got < want-0.001 || got > want+0.001 {
		t.Errorf("cpu is %v, want %v", got, want)
	}
}

func TestCPUOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		c.write("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
		s := open(c, c.process)
		// Waiting for a disk is idle; what another machine has stolen is not.
		c.write("proc/stat", "cpu  200 100 200 900 200 50 50 200 70 0\n")
		c.wants(t, s, 0.667)
		c.wants(t, s, -1) // the counters stand still
		c.write("proc/stat", "cpu  1200 100 200 900 200 50 50 200 70 0\n")
		c.wants(t, s, 1)
		for _, bad := range []string{"", "cpu 1 2 3\n", "cpu  a 100 200 900 200 50 50 200\n", "intr 1 2 3 4 5 6 7 8 9\n"} {
			c.write("proc/stat", bad)
			c.wants(t, s, -1)
		}
	})
}

func TestCPUOfTheCgroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		c.write("proc/self/cgroup", "1:cpu:/old\n0::/pods/this\n")
		used := func(dir, usec string) {
			c.write("sys/fs/cgroup"+dir+"/cpu.stat", "nr_periods 7\nusage_usec "+usec+"\n")
		}
		used("", "9000000000000")
		used("/pods", "1000000")
		used("/pods/this", "1000000")
		c.write("sys/fs/cgroup/pods/cpu.max", "400000 100000\n")
		c.write("sys/fs/cgroup/pods/this/cpu.max", "50000 100000\n")
		s := open(c, c.process)
		used("/pods/this", "22000000") // 21 s of 30 s
		used("/pods", "25000000")
		c.wants(t, s, 0.7)
		used("/pods/this", "22000000")
		used("/pods", "241000000") // the neighbours: 216 s of 240 s
		c.wants(t, s, 0.9)
		c.write("sys/fs/cgroup/pods/cpu.max", "max 100000\n")
		used("/pods/this", "58000000") // more than it may
		c.wants(t, s, 1)
		c.write("sys/fs/cgroup/pods/this/cpu.max", "0 0\n")
		c.wants(t, s, -1)
		c.write("proc/self/cgroup", "0::/../../else\n")
		c.wants(t, s, -1)
	})
}

func TestCPUOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		c.spent = time.Hour
		s := open(c, c.process)
		if _, ok := s.Signal(CPU); ok {
			t.Error("known at once")
		}
		c.spent += 15 * time.Second * time.Duration(runtime.GOMAXPROCS(0))
		c.wants(t, s, 0.25)
		c.spent = -1
		c.wants(t, s, -1)
	})
}

// It is looked at once a second, and one busy second does not make a busy machine.
func TestCPUIsSmooth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		c.spent = 0
		s := open(c, c.process)
		c.wants(t, s, 0)
		for i, want := range []float64{0.283, 0.487, 0.632} {
			c.spent += time.Second * time.Duration(runtime.GOMAXPROCS(0))
			time.Sleep(time.Second)
			got, ok := s.Signal(CPU)
			if !ok || got < want-0.01 || got > want+0.01 {
				t.Errorf("%d s busy: %v, want about %v", i+1, got, want)
			}
		}
		before, _ := s.Signal(CPU)
		c.spent += time.Hour
		time.Sleep(cpuEvery - 1)
		if after, _ := s.Signal(CPU); after != before {
			t.Error("looked at twice in a second")
		}
	})
}

// This machine has something to say, if it is a Linux.
func TestCPUHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	if m := readMachine(os.DirFS("/")); m != nil && (m.total <= 0 || m.busy > m.total) {
		t.Errorf("/proc/stat is read as %+v", m)
	}
	for _, dir := range groupFolders(os.DirFS("/"), "cpu") {
		if !strings.HasPrefix(dir, "sys/fs/cgroup") || !fs.ValidPath(dir) {
			t.Errorf("a cgroup in %q", dir)
		}
	}
	s := New()
	for start := time.Now(); time.Since(start) < cpuLeast+50*time.Millisecond; { // be busy
	}
	if v, ok := s.Signal(CPU); !ok || v <= 0 || v > 1 {
		t.Errorf("cpu is %v, %v after being busy", v, ok)
	}
}
