package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// askArg runs this program as a client that sends queries faster than any server answers. dnsperf takes more CPU time
// for a query than the fast servers do, so with it on an equal core they all seem equally fast.
const askArg = "ask"

// askSpec configures the client.
type askSpec struct {
	Addr, File string
	Clients    int // number of sockets
	Window     int // questions without an answer, of all clients together
	Length     time.Duration
	Timeout    time.Duration // time after which a question is lost; default one second
	Changes    *askChanges   // changes to make during the run; nil: none
}

// askResult is the result of the questions.
type askResult struct {
	Answered, Lost int
	Wrong          int // replies that match no open question
	Seconds        float64
	Changes        *changesDone // nil: there were none
}

const (
	askAtOnce = 64   // messages in one system call
	askReply  = 1500 // bytes, more than any server here sends
)

// ask runs in its own process, so that it can be kept on the clients' core.
func ask(in io.Reader, out io.Writer) error {
	var s askSpec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	a, err := newQuestioner(s)
	if err != nil {
		return err
	}
	defer a.close()
	runtime.LockOSThread()
	result, err := a.run(s.Length)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// questioner is all clients of one server.
type questioner struct {
	questions [][]byte // messages; the ID of each is set when it is sent
	next      int
	id        uint16
	waiting   []waitingQuestion // by ID
	open      int               // number of those
	clients   []askClient
	polls     []unix.PollFd
	io        askIO
	result    askResult
	half      time.Duration // half of the timeout
	tick      int           // number of halves that have passed
	changer   *changer      // nil: no changes
}

// askClient is one socket.
type askClient struct {
	fd   int
	free int // questions that it may send
}

// waitingQuestion is an open question; the zero value is none.
type waitingQuestion struct {
	question []byte
	client   int
	tick     int
}

// newQuestioner opens all sockets before the measurement. The clients share the open questions as evenly as whole
// numbers allow.
func newQuestioner(s askSpec) (*questioner, error) {
	addr, err := netip.ParseAddrPort(s.Addr)
	if err != nil {
		return nil, err
	}
	if s.Clients < 1 || s.Window < s.Clients {
		return nil, fmt.Errorf("%d clients cannot share %d questions", s.Clients, s.Window)
	}
	a := &questioner{waiting: make([]waitingQuestion, 1<<16), half: cmp.Or(s.Timeout, time.Second) / 2}
	if a.questions, err = readQuestions(s.File); err != nil {
		return nil, err
	}
	for i := range s.Clients {
		fd, err := dialUDP(addr)
		if err != nil {
			a.close()
			return nil, err
		}
		share := s.Window * (i + 1) / s.Clients
		a.clients = append(a.clients, askClient{fd, share - s.Window*i/s.Clients})
		a.polls = append(a.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	a.io.init(a.clients[0].fd)
	if s.Changes != nil {
		if a.changer, err = newChanger(*s.Changes, s.Length); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

// readQuestions packs the lines of dnsperf's file as messages.
func readQuestions(file string) ([][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list [][]byte
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			if len(list) == 0 && lines.Err() == nil {
				return nil, errors.New(file + " holds no questions")
			}
			return list, lines.Err()
		}
		name, qtype, _ := strings.Cut(lines.Text(), " ")
		m := new(dns.Msg).SetQuestion(name, dns.StringToType[qtype])
		m.RecursionDesired = false
		wire, err := m.Pack()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		list = append(list, wire)
	}
}

// dialUDP opens a socket that receives only from addr.
func dialUDP(addr netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	// As large as any program may have, so that a server that sends many replies at once does not lose any.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20); err != nil {
		unix.Close(fd)
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		unix.Close(fd)
		return 0, os.NewSyscallError("connect", err)
	}
	return fd, nil
}

// close also ends after a failed start, when only some sockets are open.
func (a *questioner) close() {
	for _, c := range a.clients {
		unix.Close(c.fd)
	}
	if a.changer != nil {
		a.changer.close()
	}
}

// run sends questions for that long, and then waits for the last answers.
func (a *questioner) run(length time.Duration) (askResult, error) {
	start := time.Now()
	for {
		passed := time.Since(start)
		if tick := int(passed / a.half); tick != a.tick {
			a.tick = tick
			a.giveUp()
		}
		over := passed >= length
		changing, err := a.change(passed, !over)
		if err != nil || over && a.open == 0 && !changing {
			return a.result, err
		}
		got, err := a.poll(!over)
		if err != nil {
			return a.result, err
		}
		if got > 0 {
			a.result.Seconds = time.Since(start).Seconds()
		}
	}
}

// change polls the changes, and reports whether any are in flight.
func (a *questioner) change(passed time.Duration, more bool) (bool, error) {
	if a.changer == nil {
		return false, nil
	}
	open, err := a.changer.poll(passed, more)
	if !open && !more {
		done := a.changer.result()
		a.result.Changes = &done
	}
	return open, err
}

// poll reads the answers of each client and sends as many new questions. It does not sleep without answers: waking it
// would be work for the server's core, which clients on other machines do not cause.
func (a *questioner) poll(more bool) (got int, err error) {
	for i := range a.clients {
		if more && a.clients[i].free > 0 { // at the start, and after a loss
			if err := a.send(i); err != nil {
				return 0, err
			}
		}
	}
	if _, err := unix.Poll(a.polls, 0); err != nil && !errors.Is(err, unix.EINTR) {
		return 0, os.NewSyscallError("poll", err)
	}
	for i := range a.polls {
		if a.polls[i].Revents == 0 {
			continue
		}
		n, err := a.io.receive(a.clients[i].fd)
		if err != nil {
			return got, err
		}
		for k := range n {
			a.answered(i, a.io.reply(k))
		}
		got += n
		if more {
			if err := a.send(i); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

// answered checks that the message is a reply to a question of this client.
func (a *questioner) answered(client int, reply []byte) {
	const header, response = 12, 0x80
	if len(reply) < header {
		a.result.Wrong++
		return
	}
	w := &a.waiting[binary.BigEndian.Uint16(reply)]
	if w.question == nil || w.client != client || reply[2]&response == 0 ||
		!bytes.HasPrefix(reply[header:], w.question[header:]) {
		a.result.Wrong++
		return
	}
	a.result.Answered++
	a.settle(w)
}

// settle closes a question, so that its client may send another.
func (a *questioner) settle(w *waitingQuestion) {
	a.clients[w.client].free++
	a.open--
	*w = waitingQuestion{}
}

// giveUp counts the questions that waited too long as lost.
func (a *questioner) giveUp() {
	for i := range a.waiting {
		if w := &a.waiting[i]; w.question != nil && a.tick-w.tick > 2 {
			a.result.Lost++
			a.settle(w)
		}
	}
}

// send sends all questions that a client may send.
func (a *questioner) send(client int) error {
	c := &a.clients[client]
	for c.free > 0 {
		n := min(c.free, askAtOnce)
		for k := range n {
			a.io.add(k, a.ask(client))
		}
		if err := a.io.send(c.fd, n); err != nil {
			return err
		}
		c.free -= n
	}
	return nil
}

// ask returns the next question, with an ID that no open question has.
func (a *questioner) ask(client int) []byte {
	for a.id++; a.waiting[a.id].question != nil; a.id++ {
	}
	q := a.questions[a.next]
	a.next = (a.next + 1) % len(a.questions)
	binary.BigEndian.PutUint16(q, a.id)
	a.waiting[a.id] = waitingQuestion{q, client, a.tick}
	a.open++
	return q
}
