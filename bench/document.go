package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/miekg/dns"
	"go.etcd.io/bbolt"
)

// documentArg runs this program as the server that the MEC DNS document describes: miekg/dns answers each question with
// a look into bbolt. Its figures were measured on a machine nobody has; this one is measured beside ours.
const documentArg = "document"

var documentBucket = []byte("records")

// document serves count names of edgeName on the port until it is told to end.
func document(dir, port, count string) error {
	db, err := bbolt.Open(filepath.Join(dir, "records.db"), 0o600, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(documentBucket)
		for i := 0; i < n && err == nil; i++ {
			err = b.Put([]byte(edgeName(i)), append(binary.BigEndian.AppendUint32(nil, 30), edgeAddr(i).To4()...))
		}
		return err
	})
	if err != nil {
		return err
	}
	s := &dns.Server{Addr: net.JoinHostPort("127.0.0.1", port), Net: "udp", Handler: dns.HandlerFunc(
		func(w dns.ResponseWriter, q *dns.Msg) { answerFrom(db, w, q) })}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ended
		_ = s.Shutdown()
	}()
	return s.ListenAndServe()
}

func answerFrom(db *bbolt.DB, w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	name := dns.CanonicalName(q.Question[0].Name)
	_ = db.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(documentBucket).Get([]byte(name))
		if len(v) != 8 {
			m.Rcode = dns.RcodeNameError
			return nil
		}
		h := dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: binary.BigEndian.Uint32(v)}
		m.Answer = append(m.Answer, &dns.A{Hdr: h, A: net.IP(append([]byte(nil), v[4:]...))})
		return nil
	})
	_ = w.WriteMsg(m) // a client that is gone is not waited for
}
