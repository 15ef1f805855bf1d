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

// baselineArg runs this program as a simple server in the design of a published MEC DNS system: miekg/dns, which
// reads each answer from bbolt. The published figure is of another machine; this server is measured on the same one
// as nameplane.
const baselineArg = "baseline"

var baselineBucket = []byte("records")

// baseline serves count names of edgeName on the port until SIGTERM.
func baseline(dir, port, count string) error {
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
		b, err := tx.CreateBucket(baselineBucket)
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

// answerFrom is what a simple server does: it reads the database for each query and packs the message with the library.
func answerFrom(db *bbolt.DB, w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	name := dns.CanonicalName(q.Question[0].Name)
	_ = db.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(baselineBucket).Get([]byte(name))
		if len(v) != 8 {
			m.Rcode = dns.RcodeNameError
			return nil
		}
		h := dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: binary.BigEndian.Uint32(v)}
		m.Answer = append(m.Answer, &dns.A{Hdr: h, A: net.IP(append([]byte(nil), v[4:]...))})
		return nil
	})
	_ = w.WriteMsg(m) // a lost reply counts as lost at the client
}
