// Package hold is the stream between those who see DNS answers and those who program switches: it lets a reply wait until
// the switch of the asking pod's node has the addresses in it.
//
// The agent of a node listens, plugins of CoreDNS connect. Both sides send lines of JSON over mutual TLS. The agent begins
// with "hello", which has the prefixes of the pods it serves, and says "prefixes" when they change. Each "program", "ping" and
// "explain" of a plugin has an id, and the agent answers it with that id, in any order.
package hold

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Learned are addresses that an answer gave for a name, and for which pattern of a firewall. An agent that programmed them
// keeps them for at least Lease from then on. A lease is a length of time, so that clocks need not agree.
type Learned struct {
	Pattern string // as enforce.Pattern prints it
	Name    string // what was asked for
	Addrs   []netip.Addr
	Lease   time.Duration
}

// Explanation is what an agent knows of an address of a pattern.
type Explanation struct {
	Node       string        `json:"node,omitempty"`
	Programmed bool          `json:"programmed"`
	Age        time.Duration `json:"age,omitempty"`   // for how long it has been programmed
	Lease      time.Duration `json:"lease,omitempty"` // what is left of the longest lease; zero: none, the status holds it
}

// version is that of the messages. An agent of another one is not spoken to.
const version = 1

const (
	maxLine  = 256 << 10 // of JSON
	maxAddrs = 1000      // in one message; those beyond go with another one
	// maxQueue is how many messages wait to be sent before the peer counts as dead. All flights of an agent go into it at
	// once when a connection begins, and what comes meanwhile behind them.
	maxQueue = 2 * maxFlights
	sendTime = 5 * time.Second
)

// Operations.
const (
	opHello     = "hello"
	opPrefixes  = "prefixes"
	opProgram   = "program"
	opPing      = "ping"
	opExplain   = "explain"
	opDone      = "done"
	opPong      = "pong"
	opExplained = "explained"
)

// message is one line, in either direction.
type message struct {
	Op        string         `json:"op"`
	ID        uint64         `json:"id,omitempty"`
	Version   int            `json:"version,omitempty"`
	Prefixes  []netip.Prefix `json:"prefixes,omitempty"`
	Pattern   string         `json:"pattern,omitempty"`
	Name      string         `json:"name,omitempty"`
	Addrs     []netip.Addr   `json:"addrs,omitempty"`
	LeaseMS   int64          `json:"leaseMs,omitempty"`
	Error     string         `json:"error,omitempty"`
	Explained *Explanation   `json:"explained,omitempty"`
}

var errFull = errors.New("too many messages wait to be sent")

// stream is one connection: lines in, and a queue of lines out.
type stream struct {
	conn  net.Conn
	in    *bufio.Scanner
	ready chan struct{} // there is something in the queue; holds one

	mu    sync.Mutex
	queue []message
}

func newStream(conn net.Conn) *stream {
	s := &stream{conn: conn, in: bufio.NewScanner(conn), ready: make(chan struct{}, 1)}
	s.in.Buffer(make([]byte, 0, 4<<10), maxLine)
	return s
}

// send queues m and never waits.
func (s *stream) send(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxQueue {
		return errFull
	}
	s.queue = append(s.queue, m)
	select {
	case s.ready <- struct{}{}:
	default:
	}
	return nil
}

// write sends what is queued until ctx ends or the peer does not take it.
func (s *stream) write(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ready:
		}
		s.mu.Lock()
		queue := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, m := range queue {
			line, err := json.Marshal(m)
			if err != nil {
				return err
			}
			_ = s.conn.SetWriteDeadline(time.Now().Add(sendTime))
			if _, err := s.conn.Write(append(line, '\n')); err != nil {
				return fmt.Errorf("send %s: %w", m.Op, err)
			}
		}
	}
}

// read is the next message. A peer that says nothing for longer than idle is given up.
func (s *stream) read(idle time.Duration) (message, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(idle))
	if !s.in.Scan() {
		if err := s.in.Err(); err != nil {
			return message{}, err
		}
		return message{}, io.EOF
	}
	var m message
	if err := json.Unmarshal(s.in.Bytes(), &m); err != nil {
		return message{}, fmt.Errorf("not a message: %w", err)
	}
	return m, nil
}
