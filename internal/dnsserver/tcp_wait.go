package dnsserver

import (
	"encoding/binary"
	"net"
)

// wait makes the query that w's handler has read wait for the forwarder or for Peers. When too many queries wait
// already, it appends an error reply, which it writes at offset at of w.out's memory.
//
// A connection with maxPerConn waiting queries is not read until one of them is answered. Other connections do not
// suffer from that, and all queries of a burst get answers.
func (c *conn) wait(w *tcpWork, at int) error {
	select {
	case c.slots <- struct{}{}:
	default:
		if err := c.flush(w); err != nil {
			return err
		}
		c.slots <- struct{}{}
	}
	if !w.handler.tryAdmit() {
		<-c.slots
		w.frame(at, w.handler.overloaded())
		return nil
	}
	c.waiters.Add(1)
	c.server.conns.addPending(c)
	w.handler.startPending(c)
	return nil
}

// reply sends the forwarder's answer. It blocks while another goroutine sends on the connection.
func (c *conn) reply(compose func(out []byte) int) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	buf := c.server.replyPool.Get().(*[writeBuffer]byte)
	defer c.server.replyPool.Put(buf)
	n := compose(buf[lengthSize:])
	binary.BigEndian.PutUint16(buf[:], uint16(n))
	return c.write(buf[:lengthSize+n])
}

// send sends one message. It takes the lock for each message, so other replies can go between the messages of a
// transfer.
func (c *conn) send(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.grown {
		c.grown = true
		_ = c.net.SetWriteBuffer(transferBuffer) // a smaller buffer also works
	}
	if c.from.encrypted != nil { // one record of TLS for the length and the message
		buf := c.server.replyPool.Get().(*[writeBuffer]byte)
		defer c.server.replyPool.Put(buf)
		binary.BigEndian.PutUint16(buf[:], uint16(len(message)))
		return c.write(buf[:lengthSize+copy(buf[lengthSize:], message)])
	}
	var length [lengthSize]byte
	binary.BigEndian.PutUint16(length[:], uint16(len(message)))
	c.beginWrite()
	defer c.endWrite()
	_, err := (&net.Buffers{length[:], message}).WriteTo(c.net)
	if err != nil {
		c.abort()
	}
	return err
}

// abort resets the connection, so that the client does not take an incomplete answer for a complete one.
func (c *conn) abort() {
	c.net.SetLinger(0)
	c.net.Close()
}

func (c *conn) release() {
	c.server.conns.donePending(c)
	<-c.slots
	c.waiters.Done()
}
