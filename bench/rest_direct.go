package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"
)

// direct is a client on one connection that does only what the protocol needs. net/http takes as much CPU for a
// request as the server takes for a change, and both share two cores here; the source of changes even shares one core
// with dnsperf. A measurement with net/http would measure the client.
type direct struct {
	conn        net.Conn
	in          *bufio.Reader
	host, token string
	out         []byte
}

// dialDirect opens one connection for each writer.
func dialDirect(base, token string, writers int) ([]*direct, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	list := make([]*direct, writers)
	for i := range list {
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			return nil, err
		}
		list[i] = &direct{conn: conn, in: bufio.NewReader(conn), host: u.Host, token: token}
	}
	return list, nil
}

// put replaces the address of a record set.
func (d *direct) put(set recordset, address string) error {
	return d.call("PUT", "/v2/zones/"+set.zone+"/recordsets/"+set.ID, []byte(`{"records":["`+address+`"]}`))
}

// postBatch replaces the addresses of several record sets in one batch.
func (d *direct) postBatch(sets []recordset, first, count int) error {
	body, err := json.Marshal(batch(sets, first, count))
	if err != nil {
		return err
	}
	return d.call("POST", "/v2/zones/"+sets[0].zone+"/changes", body)
}

// call sends a request and reads the complete reply.
func (d *direct) call(method, path string, body []byte) error {
	d.out = append(d.out[:0], method+" "+path+" HTTP/1.1\r\nHost: "+d.host+"\r\nX-Auth-Token: "+d.token+
		"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	if err := d.conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := d.conn.Write(append(d.out, body...)); err != nil {
		return err
	}
	status, length, err := d.head()
	if err != nil {
		return err
	}
	if status >= 200 && status <= 299 {
		_, err := d.in.Discard(length)
		return err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(d.in, text)
	return fmt.Errorf("%s %s: %d %s %w", method, path, status, text, err)
}

// head reads the status and headers of a reply. All replies of nameplane have a length.
func (d *direct) head() (status, length int, err error) {
	length = -1
	for {
		line, err := d.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		line = bytes.TrimSpace(line)
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case status == 0 && len(line) > 12:
			status, err = strconv.Atoi(string(line[9:12]))
		case len(line) == 0 && length < 0:
			return 0, 0, fmt.Errorf("a reply of status %d has no length", status)
		case len(line) == 0:
			return status, length, nil
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(value))
		}
		if err != nil {
			return 0, 0, err
		}
	}
}
