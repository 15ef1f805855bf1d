// Package hold implements the stream between the CoreDNS plugins, which see DNS answers, and the agents, which program
// switches: a reply waits until the switch of the client's node allows its addresses.
//
// Start with Client.Hold in client.go, which the plugin calls, and Serve in agent.go, the agent's side. peer.go and
// session.go have the state of one agent in a plugin.
//
// The agent of a node listens, and plugins connect. Both sides send lines of JSON over mutual TLS. The agent begins
// with "hello", which has the prefixes of the pods that it serves, and sends "prefixes" when they change. Each
// "program", "ping" and "explain" of a plugin has an id. The agent replies with that id, in any order.
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

// Learned is a set of addresses from an answer for a name, and the firewall pattern that the name matches. An agent
// that programmed them keeps them for at least Lease. A lease is a duration, so the clocks need not agree.
type Learned struct {
	Pattern string // as formatted by enforce.Pattern
	Name    string // the queried name
	Addrs   []netip.Addr
	Lease   time.Duration
}

// Explanation is the state of an address of a pattern in an agent.
type Explanation struct {
	Node       string        `json:"node,omitempty"`
	Programmed bool          `json:"programmed"`
	Age        time.Duration `json:"age,omitempty"`   // time since it was programmed
	Lease      time.Duration `json:"lease,omitempty"` // remainder of the longest lease; zero if only the status has it
}

// version is the version of the messages. A plugin does not use an agent of another version.
const version = 1

const (
	maxLine  = 256 << 10 // maximum length of a line of JSON
	maxAddrs = 1000      // per message; more addresses need another message
	// maxQueue is the number of queued messages at which the peer counts as dead. When a connection begins, all flights of
	// an agent enter the queue at once, followed by new ones.
	maxQueue    = 2 * maxFlights
	sendTimeout = 5 * time.Second
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
	ready chan struct{} // signals that the queue is not empty; has capacity one

	mu    sync.Mutex
	queue []message
}

func newStream(conn net.Conn) *stream {
	s := &stream{conn: conn, in: bufio.NewScanner(conn), ready: make(chan struct{}, 1)}
	s.in.Buffer(make([]byte, 0, 4<<10), maxLine)
	return s
}

// send queues m. It never blocks.
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

// write sends the queue until ctx ends or a write fails.
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
			_ = s.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
			if _, err := s.conn.Write(append(line, '\n')); err != nil {
				return fmt.Errorf("send %s: %w", m.Op, err)
			}
		}
	}
}

// read returns the next message. It fails if the peer sends nothing for idle.
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
