package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"time"
)

const generateArg = "generate" // runs this program as the source of changes

// spec tells the source of changes what to do; it comes by stdin because it holds a token.
type spec struct {
	URL, Token, Zone string // no URL: the source answers itself
	Rate, Batch      int    // changes a second, and in a request
	Length           time.Duration
}

// sourceConns are enough for the pace when a request takes 30 ms.
const sourceConns = 32

// generate is a process of its own so that all its threads can be kept on the
// clients' core.
func generate(in io.Reader, out io.Writer) error {
	var s spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	sets := []recordset{{ID: "none", Name: "host0." + s.Zone, zone: "none"}}
	if s.URL == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		go answerAll(l)
		s.URL = "http://" + l.Addr().String()
	}
	d := newDesignate(s.URL, s.Token, sourceConns)
	if s.Token != "" {
		var err error
		if sets, err = d.addressSets(s.Zone, 5000); err != nil {
			return err
		}
	}
	conns, err := dialDirect(s.URL, s.Token, sourceConns)
	if err != nil {
		return err
	}
	before := ownCPU()
	done := writers{count: sourceConns, length: s.Length, rate: s.Rate / s.Batch}.run(func(writer, n int) error {
		if s.Batch == 1 {
			return conns[writer].put(sets[n%len(sets)], newAddress(n))
		}
		return conns[writer].post(sets, n*s.Batch, s.Batch)
	})
	done.PerSec *= float64(s.Batch)
	return json.NewEncoder(out).Encode(sourced{done, (ownCPU() - before).Seconds() * 1000 / float64(max(1, done.Done*s.Batch))})
}

// answerAll says yes to every request of a connection and does nothing, for as
// little CPU as it can: net/http would take as much as the client.
func answerAll(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go answerOne(conn)
	}
}

func answerOne(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	head := textproto.NewReader(r)
	for {
		if _, err := head.ReadLine(); err != nil {
			return
		}
		fields, err := head.ReadMIMEHeader()
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(fields.Get("Content-Length")) // absent is 0
		if _, err := r.Discard(n); err != nil {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 "+strconv.Itoa(http.StatusOK)+" OK\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return
		}
	}
}
