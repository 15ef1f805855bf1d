package dnsserver

import "encoding/binary"

// wait lets the query that w's handler has read wait for the forwarder. When too many wait already, the reply, for which
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
	c.server.settings.waiting.start(&w.handler, c)
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
	return c.send(buf[:lengthSize+n])
}

func (c *conn) release() {
	c.server.conns.release(c)
	<-c.forwards
	c.waiters.Done()
}
