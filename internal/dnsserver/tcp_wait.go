package dnsserver

import (
	"encoding/binary"
	"net"
	"time"
)

// wait lets the query that w's handler has read wait for the forwarder or for Peers. When too many wait already, the reply, for which
// there is room behind octet at of w.out's memory, says so.
//
// A connection that has its own share waiting is not read until one of them is done, which costs nobody else anything:
// what it asks in one go is answered, if later.
func (c *conn) wait(w *tcpWork, at int) error {
	select {
	case c.forwards <- struct{}{}:
	default:
		if err := c.flush(w); err != nil {
			return err
		}
		c.forwards <- struct{}{}
	}
	if !w.handler.mayWait() {
		<-c.forwards
		w.frame(at, w.handler.overloaded())
		return nil
	}
	c.waiters.Add(1)
	c.server.conns.hold(c)
	w.handler.await(c)
	return nil
}

// reply sends the answer of the forwarder as soon as nothing else is being sent.
func (c *conn) reply(compose func(out []byte) int) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	buf := c.server.replies.Get().(*[writeBuffer]byte)
	defer c.server.replies.Put(buf)
	n := compose(buf[lengthSize:])
	binary.BigEndian.PutUint16(buf[:], uint16(n))
	return c.write(buf[:lengthSize+n])
}

// send sends one message as soon as nothing else is being sent. Between those of a transfer there is room for others.
func (c *conn) send(message []byte) error {
	var length [lengthSize]byte
	binary.BigEndian.PutUint16(length[:], uint16(len(message)))
	c.writing.Lock()
	defer c.writing.Unlock()
	c.net.SetWriteDeadline(time.Now().Add(c.server.times.write))
	_, err := (&net.Buffers{length[:], message}).WriteTo(c.net)
	if err != nil {
		c.cut()
	}
	return err
}

// cut closes the connection: a client must not take what it has got for the whole.
func (c *conn) cut() {
	c.net.SetLinger(0)
	c.net.Close()
}

func (c *conn) release() {
	c.server.conns.release(c)
	<-c.forwards
	c.waiters.Done()
}
