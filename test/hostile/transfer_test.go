package hostile

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// master is a name server that has every zone. It answers transfers with give.
type master struct {
	addr   string
	serial atomic.Uint32
	give   func(m *master, conn *dns.Conn, query *dns.Msg)

	stop         func()       // ends the master; it can be called twice
	begun, ended atomic.Int32 // transfers; one has ended when its connection is closed
}

// newMaster starts a master on an address of the loopback network. The server limits the transfers from one address.
func newMaster(t *testing.T, ip string, give func(*master, *dns.Conn, *dns.Msg)) *master {
	t.Helper()
	m := &master{give: give}
	m.serial.Store(1)
	tcp, udp := listenBoth(t, ip)
	m.addr = tcp.Addr().String()
	m.stop = func() { tcp.Close(); udp.Close() }
	t.Cleanup(m.stop)
	questions := &dns.Server{PacketConn: udp, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		r.Authoritative = true
		r.Answer = []dns.RR{m.soa(q)}
		_ = w.WriteMsg(r) // if it is lost, the server queries again
	})}
	go questions.ActivateAndServe()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			go m.transfer(&dns.Conn{Conn: conn})
		}
	}()
	return m
}

func listenBoth(t *testing.T, ip string) (net.Listener, net.PacketConn) {
	t.Helper()
	for range 100 {
		tcp, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			t.Fatal(err)
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err == nil {
			return tcp, udp
		}
		tcp.Close()
	}
	t.Fatalf("no port of %s is free for both UDP and TCP", ip)
	return nil, nil
}

func (m *master) transfer(conn *dns.Conn) {
	defer conn.Close()
	q, err := conn.ReadMsg()
	if err != nil {
		return
	}
	m.begun.Add(1)
	m.give(m, conn, q)
	_, _ = conn.Read(make([]byte, 1)) // until the other side closes the connection
	m.ended.Add(1)
}

func record(text string) dns.RR {
	r, err := dns.NewRR(text)
	if err != nil {
		panic(err)
	}
	return r
}

func (m *master) soa(q *dns.Msg) dns.RR {
	const soa = "%s 60 IN SOA ns.test. host.test. %d 3600 3600 86400 60"
	return record(fmt.Sprintf(soa, q.Question[0].Name, m.serial.Load()))
}

// whole answers with a zone of one address, whose last byte is the serial.
func whole(m *master, conn *dns.Conn, q *dns.Msg) {
	name := q.Question[0].Name
	r := new(dns.Msg).SetReply(q)
	r.Answer = []dns.RR{m.soa(q), record(name + " 60 IN NS ns.test."),
		record(fmt.Sprintf("www.%s 60 IN A 192.0.2.%d", name, m.serial.Load())), m.soa(q)}
	_ = conn.WriteMsg(r)
}

// endless answers with a zone that never ends.
func endless(m *master, conn *dns.Conn, q *dns.Msg) {
	name := q.Question[0].Name
	r := new(dns.Msg).SetReply(q)
	r.Compress = true
	r.Answer = []dns.RR{m.soa(q), record(name + " 60 IN NS ns.test.")}
	for i := 0; ; {
		for range 500 {
			r.Answer = append(r.Answer, &dns.A{Hdr: dns.RR_Header{Name: fmt.Sprintf("h%d.%s", i, name), Rrtype: dns.TypeA,
				Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)})
			i++
		}
		if conn.WriteMsg(r) != nil {
			return
		}
		r.Answer = nil
	}
}

// silent answers with the beginning of a zone, and then sends nothing.
func silent(m *master, conn *dns.Conn, q *dns.Msg) {
	r := new(dns.Msg).SetReply(q)
	r.Answer = []dns.RR{m.soa(q), record(q.Question[0].Name + " 60 IN NS ns.test.")}
	_ = conn.WriteMsg(r)
}

// tenants is a server with SECONDARY zones of several projects. An administrator creates them, because only an
// administrator may use masters on loopback addresses.
type tenants struct {
	*server.Server
	t *testing.T
}

// secondary creates a SECONDARY zone of a project, and returns its path.
func (s tenants) secondary(project, name string, m *master) string {
	s.t.Helper()
	var z struct{ ID string }
	body := map[string]any{"name": name, "type": "SECONDARY", "masters": []string{m.addr}}
	s.Must(http.MethodPost, "/v2/zones", body, &z, "X-Auth-Sudo-Project-Id: "+project)
	return "/v2/zones/" + z.ID
}

// copied has the fields of a SECONDARY zone that an administrator reads.
type copied struct {
	Status string
	Serial uint32
	Copy   struct{ Problem string }
}

// project creates a project and returns its id.
func (s tenants) project(name string) string {
	s.t.Helper()
	var p struct{ Project struct{ ID string } }
	s.Must(http.MethodPost, "/access/v1/projects", map[string]string{"name": name}, &p)
	return p.Project.ID
}

func (s tenants) read(path string) (z copied) {
	s.t.Helper()
	s.Must(http.MethodGet, path, nil, &z, "X-Auth-All-Projects: true")
	return z
}

// arrives waits until a zone was transferred with a serial.
func (s tenants) arrives(path string, serial uint32) {
	s.t.Helper()
	server.Eventually(s.t, "a transfer from an honest master", func() bool {
		s.memory(256 << 20)
		z := s.read(path)
		return z.Status == "ACTIVE" && z.Serial == serial
	})
}

// memory fails the test if the peak memory of the server is above a limit. Then it kills the server, so that the test
// does not use up the memory of the machine.
func (s tenants) memory(limit int) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	if err != nil {
		s.t.Fatal(err)
	}
	if kb<<10 > limit {
		s.End(syscall.SIGKILL)
		s.t.Fatalf("the server used %d MiB, more than %d MiB", kb>>10, limit>>20)
	}
}

// TestEndlessTransfers gives sixteen zones of a tenant a master whose transfers never end. Each transfer must stop at
// the quota while it is read, memory must stay small, and the zone of another tenant must be transferred.
func TestEndlessTransfers(t *testing.T) {
	s := tenants{server.Start(t, server.Options{}), t}
	attacker := s.project("attacker")
	s.Must(http.MethodPatch, "/v2/quotas/"+attacker, `{"zone_records": 50000}`, nil, "X-Auth-All-Projects: true")
	bad, good := newMaster(t, "127.0.0.2", endless), newMaster(t, "127.0.0.3", whole)
	var zones []string
	for i := range 16 {
		zones = append(zones, s.secondary(attacker, fmt.Sprintf("bad%d.test.", i), bad))
	}
	s.arrives(s.secondary("victim", "good.test.", good), 1)
	for _, path := range zones {
		server.Eventually(t, "an endless transfer is given up because of the quota", func() bool {
			s.memory(256 << 20)
			return strings.Contains(s.read(path).Copy.Problem, "zone_records")
		})
	}
}

// TestEndlessTransfersWithoutQuota checks that without a quota, the memory of the server is the limit.
func TestEndlessTransfersWithoutQuota(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "200MiB")
	s := tenants{server.Start(t, server.Options{}), t}
	attacker := s.project("attacker")
	s.Must(http.MethodPatch, "/v2/quotas/"+attacker, `{"zone_records": -1, "zone_recordsets": -1}`, nil,
		"X-Auth-All-Projects: true")
	bad := newMaster(t, "127.0.0.2", endless)
	var zones []string
	for i := range 16 {
		zones = append(zones, s.secondary(attacker, fmt.Sprintf("bad%d.test.", i), bad))
	}
	for _, path := range zones {
		server.Eventually(t, "an endless transfer is given up because of the memory", func() bool {
			s.memory(256 << 20)
			return strings.Contains(s.read(path).Copy.Problem, "of memory")
		})
	}
}

// TestStalledTransfers gives the eighty zones of a tenant ten masters that stop sending. They may hold at most a
// quarter of the slots. The zone of another tenant must be transferred before any of them is aborted, and then they
// must be aborted.
func TestStalledTransfers(t *testing.T) {
	s := tenants{server.Start(t, server.Options{}), t}
	good := newMaster(t, "127.0.0.3", whole)
	var bad []*master
	for i := range 10 {
		bad = append(bad, newMaster(t, fmt.Sprintf("127.0.1.%d", i+1), silent))
	}
	count := func() (begun, ended int32) {
		for _, m := range bad {
			begun, ended = begun+m.begun.Load(), ended+m.ended.Load()
		}
		return begun, ended
	}
	for i := range 80 { // more than there are slots
		s.secondary("attacker", fmt.Sprintf("bad%d.test.", i), bad[i%len(bad)])
	}
	server.Eventually(t, "the tenant has all slots that it can get", func() bool { n, _ := count(); return n >= 16 })
	s.arrives(s.secondary("victim", "good.test.", good), 1)
	if begun, ended := count(); begun != 16 || ended != 0 {
		t.Errorf("%d transfers of stalled masters began and %d have ended; want 16 that still run", begun, ended)
	}
	server.Eventually(t, "stalled transfers are given up", func() bool { _, n := count(); return n >= 16 })
}

// TestKilledTransfer kills the server in the middle of a transfer. After the restart it must serve the old copy and
// transfer other zones, but must not start that transfer again, even when the owner requests it.
func TestKilledTransfer(t *testing.T) {
	s := tenants{server.Start(t, server.Options{}), t}
	bad := newMaster(t, "127.0.0.2", func(m *master, conn *dns.Conn, q *dns.Msg) {
		if m.serial.Load() == 1 {
			whole(m, conn, q)
		} else {
			silent(m, conn, q)
		}
	})
	good := newMaster(t, "127.0.0.3", whole)
	zone, other := s.secondary("attacker", "bad.test.", bad), s.secondary("victim", "good.test.", good)
	s.arrives(zone, 1)
	s.arrives(other, 1)
	fetch := func(path string) {
		t.Helper()
		s.Must(http.MethodPost, path+"/tasks/xfr", nil, nil, "X-Auth-All-Projects: true")
	}
	for kills := 1; kills <= 2; kills++ {
		before := bad.begun.Load()
		bad.serial.Store(2)
		if kills == 1 {
			fetch(zone)
			server.Eventually(t, "the transfer has begun", func() bool { return bad.begun.Load() > before })
		}
		begun := bad.begun.Load()
		s.Restart() // kill -9
		good.serial.Add(1)
		fetch(zone)
		fetch(other)
		s.arrives(other, good.serial.Load())
		z := s.read(zone)
		if bad.begun.Load() != begun || z.Serial != 1 || !strings.Contains(z.Copy.Problem, "ended while it transferred") {
			t.Errorf("kill %d: the transfer was started %d times again; the zone is %+v", kills, bad.begun.Load()-begun, z)
		}
		if r := s.Ask("www.bad.test", dns.TypeA); len(r.Answer) != 1 {
			t.Errorf("kill %d: the previous copy is not served: %v", kills, r)
		}
	}
}
