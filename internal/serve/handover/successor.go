package handover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// successor is the process that is to take over, as seen from its predecessor.
type successor struct {
	process *exec.Cmd
	from    *os.File
	words   *bufio.Reader
	to      *os.File
	ended   chan struct{} // closed when the process has ended; then state is set
	state   error
}

// start runs this program again, with the sockets of endpoints and their names. held names the
// sockets that systemd holds; left is the folder with files for the successor.
func start(endpoints []*opened, held map[string]bool, left string) (*successor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var names, heldNames []string
	defer func() { // our duplicates; the successor has its own
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
	}()
	for _, d := range endpoints {
		f, err := share(d.Listener)
		if err != nil {
			return nil, fmt.Errorf("pass on the socket %s: %w", d.Listener.Addr(), err)
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		names = append(names, d.Name)
		if held[d.Name] {
			heldNames = append(heldNames, d.Name)
		}
	}
	s := &successor{process: cmd, ended: make(chan struct{})}
	if err := s.connect(); err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), envFDs+"="+strconv.Itoa(len(endpoints)), envNames+"="+strings.Join(names, ":"), envHeir+"="+heirYes, envHeld+"="+strings.Join(heldNames, ":"))
	if left != "" {
		cmd.Env = append(cmd.Env, envLeft+"="+left)
	}
	if err := cmd.Start(); err != nil {
		s.close()
		return nil, fmt.Errorf("start %s: %w", self, err)
	}
	go func() {
		s.state = cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// connect makes the two pipes.
func (s *successor) connect() error {
	from, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	heard, to, err := os.Pipe()
	if err != nil {
		return errors.Join(err, from.Close(), theirs.Close())
	}
	s.from, s.words, s.to = from, bufio.NewReader(from), to
	s.process.ExtraFiles = append(s.process.ExtraFiles, heard, theirs)
	return nil
}

func (s *successor) close() {
	s.from.Close()
	s.to.Close()
}

// await returns when the successor has sent the message word. It returns an error if the successor
// has ended, if it sent nothing in time, or if ctx has ended.
func (s *successor) await(ctx context.Context, word string, within time.Duration) error {
	if err := s.from.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.from.SetReadDeadline(time.Now()) })()
	reply, _, err := hear(s.words)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it was not %s within %s", word, within)
	case err != nil:
		return s.why()
	case reply != word:
		return fmt.Errorf("it said %q instead of %q: is it another program?", reply, word)
	}
	return nil
}

// why returns how a successor ended that sends nothing any more.
func (s *successor) why() error {
	select {
	case <-s.ended:
		if s.state != nil {
			return fmt.Errorf("it ended with %w; what is wrong was printed above", s.state)
		}
		return errors.New("it ended")
	case <-time.After(time.Second):
		return errors.New("it closed the pipe: is it another program?")
	}
}

// yours hands the sockets over, with the file of the counters.
func (s *successor) yours(snapshot string) error {
	return say(s.to, messageYours, strconv.Quote(snapshot))
}

// kill ends a successor that is not going to take over.
func (s *successor) kill() {
	_ = s.process.Process.Kill() // it may have ended by itself
	<-s.ended
	s.close()
}

func (s *successor) pid() int { return s.process.Process.Pid }
