package pressure

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func (c *computer) wantsMemory(t *testing.T, s *Signals, want float64) {
	t.Helper()
	time.Sleep(memoryEvery)
	got, ok := s.Signal(Memory)
	if !ok {
		got = -1
	}
	if got < want-0.001 || got > want+0.001 {
		t.Errorf("memory is %v, want %v", got, want)
	}
}

func TestMemoryOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		s := open(c, c.process)
		c.wantsMemory(t, s, -1)
		c.write("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n")
		c.wantsMemory(t, s, 0.6)
		for _, bad := range []string{"", "MemTotal: 1000 kB\n", "MemTotal: x\nMemAvailable: y\n", "MemTotal: 0 kB\nMemAvailable: 0 kB\n"} {
			c.write("proc/meminfo", bad)
			c.wantsMemory(t, s, -1)
		}
	})
}

// The fullest of the groups counts, without caches that can be dropped, in both versions of cgroups.
func TestMemoryOfTheCgroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		c.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n")
		c.write("proc/self/cgroup", "0::/pods/this\n")
		c.write("sys/fs/cgroup/pods/memory.current", "900\n")
		c.write("sys/fs/cgroup/pods/memory.max", "max\n")
		c.write("sys/fs/cgroup/pods/this/memory.current", "900\n")
		c.write("sys/fs/cgroup/pods/this/memory.max", "1000\n")
		c.write("sys/fs/cgroup/pods/this/memory.stat", "anon 500\ninactive_file 200\n")
		s := open(c, c.process)
		c.wantsMemory(t, s, 0.7)
		c.write("sys/fs/cgroup/pods/memory.max", "1000\n")
		c.wantsMemory(t, s, 0.9)
	})
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		c.write("proc/self/cgroup", "7:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n")
		c.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "600\n")
		c.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n") // none
		s := open(c, c.process)
		c.wantsMemory(t, s, -1)
		c.write("sys/fs/cgroup/memory/docker/1f/memory.usage_in_bytes", "600\n")
		c.write("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "1000\n")
		c.write("sys/fs/cgroup/memory/docker/1f/memory.stat", "total_inactive_file 100\n")
		c.wantsMemory(t, s, 0.5)
	})
}

func TestCPUOfTheCgroupVersion1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComputer()
		const dir = "sys/fs/cgroup/cpu,cpuacct"
		c.write("proc/self/cgroup", "7:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n")
		c.write(dir+"/cpu.cfs_quota_us", "50000\n") // a container sees its own group as the outermost
		c.write(dir+"/cpu.cfs_period_us", "100000\n")
		c.write(dir+"/cpuacct.usage", "1000000000\n")
		s := open(c, c.process)
		c.write(dir+"/cpuacct.usage", "22000000000\n") // 21 s of 30 s
		c.wants(t, s, 0.7)
		c.write(dir+"/cpu.cfs_quota_us", "-1\n")
		c.write(dir+"/cpuacct.usage", "99000000000\n")
		c.wants(t, s, -1)
	})
}

func TestMemoryHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	if v, ok := New().Signal(Memory); ok && (v <= 0 || v > 1) {
		t.Errorf("memory is %v", v)
	}
}

// Without a gateway nobody knows how many requests there are; with one it is an average.
func TestServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(newComputer(), func() (time.Duration, bool) { return 0, false })
		if _, ok := s.Signal(Inflight); ok {
			t.Error("known before anybody said it")
		}
		n := int64(10)
		s.Serving(func() int64 { return n })
		if v, ok := s.Signal(Inflight); !ok || v != 10 {
			t.Errorf("inflight is %v, %t", v, ok)
		}
		n = 1000 // a moment of it
		time.Sleep(inflightEvery)
		if v, _ := s.Signal(Inflight); v > 100 {
			t.Errorf("after a moment it is %v", v)
		}
		time.Sleep(10 * time.Second)
		if v, _ := s.Signal(Inflight); v < 999 {
			t.Errorf("after ten seconds it is %v", v)
		}
	})
}

// What sheds sees after three seconds that the upstream is well again; the signal itself after ten.
func TestRecentLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(newComputer(), func() (time.Duration, bool) { return 0, false })
		for range 100 {
			s.Answered(time.Second)
		}
		if v, ok := s.Recent(UpstreamP99); !ok || v < 0.9 {
			t.Errorf("at once: %v, %t", v, ok)
		}
		for range 4 {
			time.Sleep(time.Second)
			for range 100 {
				s.Answered(time.Millisecond)
			}
		}
		if v, _ := s.Recent(UpstreamP99); v > 0.002 {
			t.Errorf("the last seconds: %v", v)
		}
		if v, _ := s.Signal(UpstreamP99); v < 0.9 {
			t.Errorf("the last ten seconds: %v", v)
		}
		if v, ok := s.Recent(Load); ok {
			t.Errorf("load is %v", v)
		}
	})
}
