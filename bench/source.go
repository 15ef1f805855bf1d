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

// spec configures the source of changes. It is passed by stdin because it contains a token.
type spec struct {
	URL, Token, Zone string // without URL, the source answers itself
	Rate, Batch      int    // changes per second, and per request
	Length           time.Duration
}

// sourceConns is enough for the rate when a request takes 30 ms.
const sourceConns = 32

// generate runs in its own process, so that all its threads can be kept on the clients' core.
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
		return conns[writer].postBatch(sets, n*s.Batch, s.Batch)
	})
	done.PerSec *= float64(s.Batch)
	cpu := (ownCPU() - before).Seconds() * 1000 / float64(max(1, done.Done*s.Batch))
	return json.NewEncoder(out).Encode(sourceResult{done, cpu})
}

// answerAll confirms every request without work, with as little CPU as possible: net/http would take as much as the
// client.
func answerAll(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go answerOne(conn)
	}
}

// answerOne reads as little of a request as it must to find the next one.
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
		n, _ := strconv.Atoi(fields.Get("Content-Length")) // 0 when absent
		if _, err := r.Discard(n); err != nil {
			return
		}
		if _, err := io.WriteString(conn,
			"HTTP/1.1 "+strconv.Itoa(http.StatusOK)+" OK\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return
		}
	}
}
