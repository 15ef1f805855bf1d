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
	// maxSegmentSize is the largest reply that is sent together with others. The kernel refuses segments that do not fit
	// a packet, so larger ones would fail on a usual path.
	maxSegmentSize = 1400

	// maxSegments is UDP_MAX_SEGMENTS of the first kernels that had it. Later ones allow more.
	maxSegments = 64

	// maxPayload is the largest UDP payload over IPv4, which allows less than IPv6.
	maxPayload = 65507
)

// segments joins replies to the same client into one message that the kernel cuts into datagrams (UDP_SEGMENT). The
// message passes the network stack once instead of once for each reply. Resolvers use a new port for each query and
// gain nothing. Forwarders and load balancers keep their sockets and do.
type segments struct {
	largest int                 // largest reply that the kernel accepts in a joined message; 0 without kernel support
	order   [batchSize]uint32   // reply numbers, sorted by client, then by size with the largest first
	seen    [2 * batchSize]byte // hash table of clients: 1 + the number of the first reply to each
	out     [batchSize]mmsghdr
	iovecs  [batchSize]unix.Iovec
	control [batchSize][controlSize]byte
	single  [batchSize]mmsghdr // replies of a joined message that the kernel refused
}

// probe asks the kernel for its support, once for a socket.
func (s *segments) probe(raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil {
			s.largest = maxSegmentSize
		}
	})
}

// join returns the messages to send. They share the memory of replies, except for the control message that sets the
// segment size.
func (s *segments) join(replies []mmsghdr) []mmsghdr {
	if s.largest == 0 || len(replies) < 2 || !s.sort(replies) {
		return replies
	}
	messages := 0
	for from := 0; from < len(replies); messages++ {
		n := s.runLength(replies, from)
		first := &replies[byte(s.order[from])]
		m := &s.out[messages]
		m.hdr = first.hdr
		m.hdr.Iov = &s.iovecs[from]
		m.hdr.SetIovlen(n)
		for i := from; i < from+n; i++ {
			s.iovecs[i] = *replies[byte(s.order[i])].hdr.Iov
		}
		if n > 1 {
			m.setSegmentSize(&s.control[messages])
		}
		from += n
	}
	return s.out[:messages]
}

// sort fills order, and reports whether any client has more than one reply.
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

// first returns the number of the first reply to the client of reply i.
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

// runLength returns how many replies, beginning with from, form one message: replies of one size, and perhaps a
// smaller one at the end.
func (s *segments) runLength(replies []mmsghdr, from int) int {
	size := func(i int) int { return int(replies[byte(s.order[i])].hdr.Iov.Len) }
	whole := size(from)
	if whole > s.largest {
		return 1
	}
	total := whole
	for i := from + 1; i < len(replies); i++ {
		total += size(i)
		if s.order[i]>>24 != s.order[from]>>24 || i-from == maxSegments || total > maxPayload {
			return i - from
		}
		if size(i) < whole {
			return i - from + 1
		}
	}
	return len(replies) - from
}

// split returns the single replies of a message that the kernel refused. The segments may be too large for the path
// to that client, or the socket may not support segments. Then split also lowers s.largest, so that this size is not
// tried again.
func (s *segments) split(m *mmsghdr, errno syscall.Errno) []mmsghdr {
	parts := unsafe.Slice(m.hdr.Iov, int(m.hdr.Iovlen))
	switch errno {
	case unix.EINVAL, unix.EMSGSIZE, unix.EIO, unix.EOPNOTSUPP:
		s.largest = min(s.largest, int(parts[0].Len)-1)
	}
	for i := range parts {
		one := &s.single[i]
		one.hdr = m.hdr
		one.hdr.Iov = &parts[i]
		one.hdr.SetIovlen(1)
		one.hdr.SetControllen(int(m.hdr.Controllen) - unix.CmsgSpace(2))
	}
	return s.single[:len(parts)]
}

func (m *mmsghdr) isSegmented() bool { return m.hdr.Iovlen > 1 }

func (m *mmsghdr) name() *unix.RawSockaddrInet6 {
	return (*unix.RawSockaddrInet6)(unsafe.Pointer(m.hdr.Name))
}

func (m *mmsghdr) control() []byte { return unsafe.Slice(m.hdr.Control, int(m.hdr.Controllen)) }

// setSegmentSize appends the segment size to a copy of the message's control message.
func (m *mmsghdr) setSegmentSize(control *[controlSize]byte) {
	at := copy(control[:], m.control())
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
	header.Level, header.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[at+unix.CmsgLen(0):], uint16(m.hdr.Iov.Len))
	m.hdr.Control = &control[0]
	m.hdr.SetControllen(at + unix.CmsgSpace(2))
}

// hashName is not a strong hash: a client that provokes collisions costs 64 comparisons instead of one.
func hashName(name *unix.RawSockaddrInet6) uint32 {
	b := (*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(name))
	h := binary.NativeEndian.Uint64(b[0:]) ^ binary.NativeEndian.Uint64(b[8:])*3 ^ binary.NativeEndian.Uint64(b[16:])*5
	return uint32(h * 0x9E3779B97F4A7C15 >> 32)
}
