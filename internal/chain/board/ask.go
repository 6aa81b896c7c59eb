package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// AskTimeout is how long a question waits for answers.
	AskTimeout = 2500 * time.Millisecond
	// MaxAnswerBody and MaxQuestionBody bound answers and questions, in bytes.
	MaxAnswerBody   = 64 << 10
	MaxQuestionBody = 15 << 10

	pollEvery = 40 * time.Millisecond
	// maxAnswering is how many questions are answered at the same time.
	maxAnswering = 8
	// remembered is how long an instance remembers a question, so that it answers once.
	remembered = time.Minute
)

// ErrLongQuestion means that nobody was asked.
var ErrLongQuestion = errors.New("the question is too long")

// questions handles the questions that instances ask each other through a board.
type questions struct {
	mu      sync.Mutex
	topics  map[string]func([]byte) []byte
	seen    map[string]time.Time // when questions, by ID, were answered or asked here
	members []Member             // as last listed
	busy    chan struct{}
	done    sync.WaitGroup
}

func (q *questions) open() {
	q.topics = make(map[string]func([]byte) []byte)
	q.seen = make(map[string]time.Time)
	q.busy = make(chan struct{}, maxAnswering)
}

func (q *questions) wait() { q.done.Wait() }

// first reports whether a question is new, and remembers it.
func (q *questions) first(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for other, at := range q.seen {
		if now.Sub(at) > remembered {
			delete(q.seen, other)
		}
	}
	_, known := q.seen[id]
	q.seen[id] = now
	return !known
}

// Answer registers f to answer the questions of a topic, those of this instance included.
// Answers of more than MaxAnswerBody bytes are not sent to others.
func (b *Board) Answer(topic string, f func(question []byte) []byte) {
	b.questions.mu.Lock()
	defer b.questions.mu.Unlock()
	b.questions.topics[topic] = f
}

// answerTo answers a question, and reports whether the topic is known.
func (b *Board) answerTo(topic string, question []byte) ([]byte, bool) {
	if topic == topicHas {
		return b.has(question), true
	}
	b.questions.mu.Lock()
	f := b.questions.topics[topic]
	b.questions.mu.Unlock()
	if f == nil {
		return nil, false
	}
	return f(question), true
}

// Marks of an answer, before its text.
const (
	answered  = "answer"
	unhandled = "unhandled" // the instance does not know the topic
	tooLong   = "long"
)

// answerAll answers, in the background, the open questions that this instance has not seen yet.
func (b *Board) answerAll(ctx context.Context, open []string) {
	for _, id := range open {
		if len(b.questions.busy) == cap(b.questions.busy) {
			return // the next look answers the others
		}
		if !b.questions.first(id) {
			continue
		}
		b.questions.busy <- struct{}{}
		b.questions.done.Go(func() {
			defer func() { <-b.questions.busy }()
			b.answerOne(ctx, id)
		})
	}
}

func (b *Board) answerOne(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	text, err := b.table.Question(ctx, id)
	if err != nil || text == "" {
		return // whoever asked will miss this instance
	}
	topic, body, _ := strings.Cut(text, "\n")
	mark := answered
	answer, ok := b.answerTo(topic, []byte(body))
	switch {
	case !ok:
		mark = unhandled
	case len(answer) > MaxAnswerBody:
		mark, answer = tooLong, nil
	}
	_ = b.table.Answer(ctx, id, mark+" "+b.o.Self.ID+" "+b.o.Self.Name+"\n"+string(answer)) // if it is lost, whoever asked will miss this instance
}

// Ask puts a question to all instances, this one included. It returns the answers that arrive
// within AskTimeout, and the instances without one, each with the reason. An error means that
// the others could not be asked; answers has that of this instance even then, but for ErrLongQuestion.
func (b *Board) Ask(ctx context.Context, topic string, question []byte) (answers map[Node][]byte, missing []Absent, err error) {
	answers = make(map[Node][]byte)
	if n := len(topic) + len(question); strings.Contains(topic, "\n") || n > MaxQuestionBody {
		return answers, nil, fmt.Errorf("%w: it has %d bytes, at most %d can be asked", ErrLongQuestion, n, MaxQuestionBody)
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	own := make(chan *expectation, 1)
	b.questions.done.Go(func() {
		self := &expectation{Member: Member{Node: b.o.Self, Follows: true}, mark: unhandled}
		if answer, ok := b.answerTo(topic, question); ok {
			self.mark, self.answer = answered, answer
		}
		own <- self
	})
	defer func() {
		self := &expectation{Member: Member{Node: b.o.Self, Follows: true}}
		select {
		case self = <-own:
		default:
			select {
			case self = <-own:
			case <-ctx.Done():
			}
		}
		if self.mark == answered {
			answers[b.o.Self] = self.answer
		} else {
			missing = append(missing, Absent{b.o.Self, self.why()})
		}
		slices.SortFunc(missing, func(a, b Absent) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	}()
	if b.table == nil {
		return answers, nil, nil
	}
	id := rand.Text()
	b.questions.first(id)
	members := make(chan []Member, 1)
	b.questions.done.Go(func() { members <- b.listMembers(ctx) })
	limited, end := context.WithTimeout(ctx, b.o.Timeout)
	err = b.table.Ask(limited, id, topic+"\n"+string(question))
	end()
	expected := make(map[string]*expectation)
	for _, m := range <-members {
		if m.ID != b.o.Self.ID {
			expected[m.ID] = &expectation{Member: m}
		}
	}
	if err == nil {
		err = b.collect(ctx, id, expected)
	}
	for _, e := range expected {
		switch {
		case e.mark == answered:
			answers[e.Node] = e.answer
		case err != nil && e.mark == "":
			missing = append(missing, Absent{e.Node, err.Error()})
		default:
			missing = append(missing, Absent{e.Node, e.why()})
		}
	}
	return answers, missing, err
}

// expectation is a member whose answer is awaited.
type expectation struct {
	Member
	mark   string // "" until it has answered
	answer []byte
}

func (e *expectation) why() string {
	switch {
	case e.mark == unhandled:
		return "it does not know this question"
	case e.mark == tooLong:
		return "its answer is too long"
	case !e.Follows:
		return "it does not follow what operators order: an older version, or a program of its own"
	}
	return "it did not answer in time"
}

// collect reads answers into expected until all members that follow the board have answered, or ctx ends.
func (b *Board) collect(ctx context.Context, id string, expected map[string]*expectation) error {
	read := 0
	for {
		limited, end := context.WithTimeout(ctx, b.o.Timeout)
		texts, err := b.table.Answers(limited, id, read)
		end()
		switch {
		case ctx.Err() != nil:
			return nil // Ask reports those that have not answered
		case err != nil:
			return err
		}
		read += len(texts)
		for _, text := range texts {
			head, answer, _ := strings.Cut(text, "\n")
			mark, node, _ := strings.Cut(head, " ")
			node, name, _ := strings.Cut(node, " ")
			if expected[node] == nil && node != "" && node != b.o.Self.ID { // an instance that was not listed
				expected[node] = &expectation{Member: b.alsoThere(node, name)}
			}
			if e := expected[node]; e != nil {
				e.mark, e.answer = mark, []byte(answer)
			}
		}
		if len(texts) > 0 {
			continue // there may be more
		}
		if complete(expected) {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

func complete(expected map[string]*expectation) bool {
	for _, e := range expected {
		if e.Follows && e.mark == "" {
			return false
		}
	}
	return true
}

// listMembers lists the instances. If that fails, it adds those last known.
func (b *Board) listMembers(ctx context.Context) []Member {
	if b.o.Members == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	members, err := b.o.Members(ctx)
	b.questions.mu.Lock()
	defer b.questions.mu.Unlock()
	if err == nil {
		b.questions.members = slices.Clone(members)
		return members
	}
	for _, known := range b.questions.members { // an error may come with a part of the list
		if !slices.ContainsFunc(members, func(m Member) bool { return m.ID == known.ID }) {
			members = append(members, known)
		}
	}
	return members
}

// alsoThere remembers an instance that has answered though it is not listed: the list may have been lost.
func (b *Board) alsoThere(id, name string) Member {
	m := Member{Node: Node{ID: printable(id), Name: printable(name)}, Follows: true}
	b.questions.mu.Lock()
	defer b.questions.mu.Unlock()
	if !slices.ContainsFunc(b.questions.members, func(other Member) bool { return other.ID == m.ID }) {
		b.questions.members = append(b.questions.members, m)
	}
	return m
}

// maxName bounds the name of an instance, in bytes.
const maxName = 64

// printable replaces what a terminal may take for a command, and cuts a name that is too long:
// anybody who may write to the table may have answered.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), maxName)]
}

// knownMembers returns the instances that were last listed.
func (b *Board) knownMembers() []Member {
	b.questions.mu.Lock()
	defer b.questions.mu.Unlock()
	return slices.Clone(b.questions.members)
}
