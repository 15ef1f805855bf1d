package dnsserver

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// someReply is a reply to a client, given by its port, from one of our addresses.
type someReply struct {
	port uint16
	from byte
	size int
}

// messages returns replies in the form of a batch. They have their own memory.
func messages(replies []someReply) []mmsghdr {
	list := make([]mmsghdr, len(replies))
	for i, r := range replies {
		name := &unix.RawSockaddrInet6{Family: unix.AF_INET, Port: r.port}
		part := &unix.Iovec{Base: new(byte)}
		part.SetLen(r.size)
		hdr := &list[i].hdr
		hdr.Name, hdr.Namelen, hdr.Iov = (*byte)(unsafe.Pointer(name)), unix.SizeofSockaddrInet4, part
		hdr.SetIovlen(1)
		if r.from > 0 {
			control := new([controlSize]byte)
			control[unix.SizeofCmsghdr] = r.from
			hdr.Control = &control[0]
			hdr.SetControllen(unix.CmsgSpace(unix.SizeofInet4Pktinfo))
		}
	}
	return list
}

// shape describes each message: its client, our address, the segment size, and the sizes of its replies.
func shape(list []mmsghdr) []string {
	var got []string
	for i := range list {
		m := &list[i]
		var b strings.Builder
		fmt.Fprintf(&b, "%d", m.name().Port)
		control := m.control()
		if m.isSegmented() {
			at := len(control) - unix.CmsgSpace(2)
			h := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
			if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_SEGMENT && int(h.Len) == unix.CmsgLen(2) {
				fmt.Fprintf(&b, " cut %d", *(*uint16)(unsafe.Pointer(&control[at+unix.CmsgLen(0)])))
			}
			control = control[:at]
		}
		if len(control) > 0 {
			fmt.Fprintf(&b, " from %d", control[unix.SizeofCmsghdr])
		}
		b.WriteString(":")
		for _, part := range unsafe.Slice(m.hdr.Iov, int(m.hdr.Iovlen)) {
			fmt.Fprintf(&b, " %d", part.Len)
		}
		got = append(got, b.String())
	}
	slices.Sort(got)
	return got
}

func TestSegmentsJoin(t *testing.T) {
	many := slices.Repeat([]someReply{{1, 0, 1200}}, 64)
	tests := []struct {
		name    string
		largest int
		replies []someReply
		want    []string
	}{
		{"none", 1400, nil, nil},
		{"one", 1400, []someReply{{1, 0, 60}}, []string{"1: 60"}},
		{"different clients", 1400, []someReply{{1, 0, 60}, {2, 0, 60}, {3, 0, 60}}, []string{"1: 60", "2: 60", "3: 60"}},
		{"one client", 1400, []someReply{{1, 0, 60}, {1, 0, 60}, {1, 0, 60}}, []string{"1 cut 60: 60 60 60"}},
		{"two clients", 1400, []someReply{{1, 0, 60}, {2, 0, 60}, {1, 0, 60}, {2, 0, 61}},
			[]string{"1 cut 60: 60 60", "2 cut 61: 61 60"}},
		{"the last one may be smaller", 1400, []someReply{{1, 0, 50}, {1, 0, 60}, {1, 0, 40}, {1, 0, 60}},
			[]string{"1 cut 60: 60 60 50", "1: 40"}},
		{"from different addresses", 1400, []someReply{{1, 1, 60}, {1, 2, 60}, {1, 1, 60}},
			[]string{"1 cut 60 from 1: 60 60", "1 from 2: 60"}},
		{"large ones go alone", 1400, []someReply{{1, 0, 1401}, {1, 0, 1401}, {1, 0, 1400}, {1, 0, 1400}},
			[]string{"1 cut 1400: 1400 1400", "1: 1401", "1: 1401"}},
		{"the kernel cannot", 0, []someReply{{1, 0, 60}, {1, 0, 60}}, []string{"1: 60", "1: 60"}},
		{"more than a message holds", 1400, many, []string{"1 cut 1200:" + strings.Repeat(" 1200", 10), "1 cut 1200:" +
			strings.Repeat(" 1200", 54)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &segments{largest: tt.largest}
			s.join(messages([]someReply{{1, 1, 70}, {1, 1, 70}, {2, 1, 80}, {2, 1, 80}})) // must not affect the next call
			if diff := cmp.Diff(tt.want, shape(s.join(messages(tt.replies)))); diff != "" {
				t.Errorf("join (-want +got)\n%s", diff)
			}
		})
	}
}

// TestSegmentsAll checks, for many combinations of clients and sizes, that each reply is in one message to its
// client.
func TestSegmentsAll(t *testing.T) {
	s := &segments{largest: 1400}
	for n := range batchSize + 1 {
		for clients := 1; clients < 70; clients += 7 {
			var replies []someReply
			want := map[someReply]int{}
			for i := range n {
				r := someReply{uint16(i * 31 % clients), 0, 40 + i*i%7}
				replies = append(replies, r)
				want[r]++
			}
			list := messages(replies)
			got := map[someReply]int{}
			for _, m := range s.join(list) {
				for _, part := range unsafe.Slice(m.hdr.Iov, int(m.hdr.Iovlen)) {
					got[someReply{m.name().Port, 0, int(part.Len)}]++
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(someReply{})); diff != "" {
				t.Fatalf("%d replies to %d clients (-want +got)\n%s", n, clients, diff)
			}
		}
	}
}

func TestSegmentsNoAllocs(t *testing.T) {
	s := &segments{largest: 1400}
	list := messages(slices.Repeat([]someReply{{1, 0, 60}, {2, 0, 61}, {1, 0, 62}, {3, 0, 60}}, batchSize/4))
	if n := testing.AllocsPerRun(100, func() { s.split(&s.join(list)[0], 0) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkSegments(b *testing.B) {
	for _, clients := range []int{1, 20, batchSize} {
		var replies []someReply
		for i := range batchSize {
			replies = append(replies, someReply{uint16(1000 + i%clients), 0, 60 + i%3})
		}
		list := messages(replies)
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := &segments{largest: 1400}
			for b.Loop() {
				s.join(list)
			}
		})
	}
}

// batchRig is a socket that the test serves batch by batch.
type batchRig struct {
	socket  *udpSocket
	handler *handler
	batch   *batch
	port    uint16
}

func newBatchRig(t *testing.T, listen string) *batchRig {
	t.Helper()
	cfg := Config{Listen: []string{listen}, workers: 1, RRL: RRLConfig{Off: true}}
	s := listening(t, cfg)
	t.Cleanup(s.Close)
	r := &batchRig{socket: s.udp[0], handler: newHandler(t, cfg), port: s.Addrs()[0].Port()}
	var err error
	if r.batch, err = newBatch(r.socket, r.handler.settings.udpSize); err != nil {
		t.Fatal(err)
	}
	return r
}

// serve answers the messages that have arrived, and returns the number of messages sent.
func (r *batchRig) serve(t *testing.T) int {
	t.Helper()
	b := r.batch
	if err := b.raw.Read(b.recvFunc); err != nil || b.errno != 0 {
		t.Fatalf("recvmmsg: %v, %v", err, b.errno)
	}
	r.handler.start()
	b.answer(r.handler, r.socket)
	n := len(b.pending)
	b.flush(r.socket, r.handler)
	return n
}

// someQuery returns a query whose answer has one of three sizes.
func someQuery(t *testing.T, id uint16) []byte {
	t.Helper()
	q := question([]string{"www.example.org.", "alias.example.org.", "x.example.org."}[id%3], dns.TypeA)
	q.Id = id
	return packed(t, q)
}

// ask sends queries with the given IDs to one of the server's addresses.
func (r *batchRig) ask(t *testing.T, c *net.UDPConn, server string, ids ...uint16) {
	t.Helper()
	for _, id := range ids {
		if _, err := c.WriteToUDPAddrPort(someQuery(t, id),
			netip.AddrPortFrom(netip.MustParseAddr(server), r.port)); err != nil {
			t.Fatal(err)
		}
	}
}

// want reads as many replies as ids, and checks their contents and their source address.
func (r *batchRig) want(t *testing.T, c *net.UDPConn, server string, ids ...uint16) {
	t.Helper()
	var got []uint16
	buf := make([]byte, 2048)
	for range ids {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatalf("after %d of %d replies: %v", len(got), len(ids), err)
		}
		m := unpacked(t, buf[:n])
		if want := ask(r.handler, someQuery(t, m.Id)); !bytes.Equal(buf[:n], want) {
			t.Errorf("reply %d is %x, want %x", m.Id, buf[:n], want)
		}
		if from.Addr().Unmap() != netip.MustParseAddr(server) {
			t.Errorf("reply %d came from %v, want %v", m.Id, from, server)
		}
		got = append(got, m.Id)
	}
	slices.Sort(got)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("ids of the replies (-want +got)\n%s", diff)
	}
}

func TestSegmentsOnTheWire(t *testing.T) {
	tests := []struct{ listen, client, first, second string }{
		{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
		{"[::1]:0", "[::1]:0", "::1", "::1"},
		{"0.0.0.0:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.2"},
		{"[::]:0", "[::1]:0", "::1", "::1"},
	}
	for _, tt := range tests {
		t.Run(tt.listen, func(t *testing.T) {
			r := newBatchRig(t, tt.listen)
			if r.batch.joined.largest == 0 {
				t.Fatal("the kernel does not know UDP_SEGMENT, which it has since 4.18")
			}
			one, other, third := udpClient(t, tt.client), udpClient(t, tt.client), udpClient(t, tt.client)
			for range 2 { // a batch must not affect the next
				r.ask(t, one, tt.first, 0, 1, 2, 3, 4, 5)
				r.ask(t, other, tt.second, 6, 9, 12, 15)
				r.ask(t, third, tt.first, 7)
				r.ask(t, one, tt.first, 8)
				r.ask(t, other, tt.second, 18)
				// The first client's replies of three sizes form two or three messages; each other client's form one.
				if n := r.serve(t); n < 4 || n > 5 {
					t.Errorf("13 replies went out in %d messages", n)
				}
				r.want(t, one, tt.first, 0, 1, 2, 3, 4, 5, 8)
				r.want(t, other, tt.second, 6, 9, 12, 15, 18)
				r.want(t, third, tt.first, 7)
			}
			// Now the same client asks two addresses.
			r.ask(t, one, tt.first, 0, 3)
			r.ask(t, one, tt.second, 6)
			n := r.serve(t)
			if isSegmented := tt.first == tt.second; isSegmented && n != 1 || !isSegmented && n != 2 {
				t.Errorf("three replies to a client that asked %s and %s went out in %d messages", tt.first, tt.second, n)
			}
		})
	}
}

// TestSegmentsRefused uses a socket without checksums, for which the kernel does not segment. Replies are sent one by
// one, and the next batch does not try segments again.
func TestSegmentsRefused(t *testing.T) {
	r := newBatchRig(t, "127.0.0.1:0")
	err := r.batch.raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	one, other := udpClient(t, "127.0.0.1:0"), udpClient(t, "127.0.0.1:0")
	for _, messages := range []int{2, 5} {
		r.ask(t, one, "127.0.0.1", 0, 3, 6)
		r.ask(t, other, "127.0.0.1", 9, 12)
		if n := r.serve(t); n != messages {
			t.Errorf("five replies were tried in %d messages, want %d", n, messages)
		}
		r.want(t, one, "127.0.0.1", 0, 3, 6)
		r.want(t, other, "127.0.0.1", 9, 12)
	}
	if n := r.handler.count.dropped[dropSend].Load(); n != 0 {
		t.Errorf("%d replies were dropped", n)
	}
}
