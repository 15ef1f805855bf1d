package dnsserver

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// largestSegment is the largest reply that is sent together with others. The kernel refuses those that do not fit a
	// packet, so a larger one would be tried in vain on a usual path.
	largestSegment = 1400

	// maxSegments is UDP_MAX_SEGMENTS of the kernels that had it first; later ones take more.
	maxSegments = 64

	// maxTogether is what one message can hold, over IPv4, which can hold less.
	maxTogether = 65507
)

// segments puts replies to the same client together, as one message that the kernel cuts into datagrams (UDP_SEGMENT):
// its way down to the network is then gone once for all of them. Resolvers ask from a new port each time and gain
// nothing; forwarders and load balancers, which keep their sockets, do.
type segments struct {
	largest int                 // reply that the kernel takes together with others; 0 when it knows nothing of this
	order   [batchSize]uint32   // replies: client, then the larger ones first
	seen    [2 * batchSize]byte // hash table of clients: 1 + the first reply to each
	out     [batchSize]mmsghdr
	parts   [batchSize]unix.Iovec
	control [batchSize][controlSize]byte
	apart   [batchSize]mmsghdr // replies that were refused together
}

// probe asks the kernel, once for a socket.
func (s *segments) probe(raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil {
			s.largest = largestSegment
		}
	})
}

// join returns the messages that replies make. They borrow from the replies all but what tells the kernel where to cut.
func (s *segments) join(replies []mmsghdr) []mmsghdr {
	if s.largest == 0 || len(replies) < 2 || !s.sort(replies) {
		return replies
	}
	messages := 0
	for from := 0; from < len(replies); messages++ {
		n := s.run(replies, from)
		first := &replies[byte(s.order[from])]
		m := &s.out[messages]
		m.hdr = first.hdr
		m.hdr.Iov = &s.parts[from]
		m.hdr.SetIovlen(n)
		for i := from; i < from+n; i++ {
			s.parts[i] = *replies[byte(s.order[i])].hdr.Iov
		}
		if n > 1 {
			m.cut(&s.control[messages])
		}
		from += n
	}
	return s.out[:messages]
}

// sort fills order, and tells whether any client has more than one reply.
func (s *segments) sort(replies []mmsghdr) bool {
	clear(s.seen[:])
	clients := 0
	for i := range replies {
		first := s.first(replies, i)
		if first == i {
			clients++
		}
		s.order[i] = uint32(first)<<24 | (0xFFFF-uint32(replies[i].hdr.Iov.Len))<<8 | uint32(i)
	}
	if clients == len(replies) {
		return false
	}
	slices.Sort(s.order[:len(replies)])
	return true
}

// first is the first reply to the client of reply i.
func (s *segments) first(replies []mmsghdr, i int) int {
	name := replies[i].name()
	for at := hashName(name); ; at++ {
		slot := &s.seen[at%uint32(len(s.seen))]
		if *slot == 0 {
			*slot = byte(i) + 1
			return i
		}
		other := &replies[*slot-1]
		if *other.name() == *name && bytes.Equal(other.control(), replies[i].control()) {
			return int(*slot - 1)
		}
	}
}

// run is how many replies from there on make one message: all of one size, and perhaps a smaller one behind them.
func (s *segments) run(replies []mmsghdr, from int) int {
	size := func(i int) int { return int(replies[byte(s.order[i])].hdr.Iov.Len) }
	whole := size(from)
	if whole > s.largest {
		return 1
	}
	total := whole
	for i := from + 1; i < len(replies); i++ {
		total += size(i)
		if s.order[i]>>24 != s.order[from]>>24 || i-from == maxSegments || total > maxTogether {
			return i - from
		}
		if size(i) < whole {
			return i - from + 1
		}
	}
	return len(replies) - from
}

// refuse takes a message apart that the kernel did not take whole, into its replies. When they are too large for the way
// to that client, or cannot be sent like that, others of that size are not tried again.
func (s *segments) refuse(m *mmsghdr, errno syscall.Errno) []mmsghdr {
	parts := unsafe.Slice(m.hdr.Iov, int(m.hdr.Iovlen))
	switch errno {
	case unix.EINVAL, unix.EMSGSIZE, unix.EIO, unix.EOPNOTSUPP:
		s.largest = min(s.largest, int(parts[0].Len)-1)
	}
	for i := range parts {
		one := &s.apart[i]
		one.hdr = m.hdr
		one.hdr.Iov = &parts[i]
		one.hdr.SetIovlen(1)
		one.hdr.SetControllen(int(m.hdr.Controllen) - unix.CmsgSpace(2))
	}
	return s.apart[:len(parts)]
}

func (m *mmsghdr) together() bool { return m.hdr.Iovlen > 1 }

func (m *mmsghdr) name() *unix.RawSockaddrInet6 {
	return (*unix.RawSockaddrInet6)(unsafe.Pointer(m.hdr.Name))
}

func (m *mmsghdr) control() []byte { return unsafe.Slice(m.hdr.Control, int(m.hdr.Controllen)) }

// cut tells the kernel where, behind what the message's control message says already.
func (m *mmsghdr) cut(control *[controlSize]byte) {
	at := copy(control[:], m.control())
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
	header.Level, header.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[at+unix.CmsgLen(0):], uint16(m.hdr.Iov.Len))
	m.hdr.Control = &control[0]
	m.hdr.SetControllen(at + unix.CmsgSpace(2))
}

// hashName need not be good: clients that make it bad make 64 comparisons out of one.
func hashName(name *unix.RawSockaddrInet6) uint32 {
	b := (*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(name))
	h := binary.NativeEndian.Uint64(b[0:]) ^ binary.NativeEndian.Uint64(b[8:])*3 ^ binary.NativeEndian.Uint64(b[16:])*5
	return uint32(h * 0x9E3779B97F4A7C15 >> 32)
}
