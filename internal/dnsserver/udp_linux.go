package dnsserver

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/internal/wire"
)

const reusePort = true

// controlUDP sets the options of a socket before it is bound.
func controlUDP(c syscall.RawConn, ip netip.Addr, wildcard bool) error {
	var err error
	set := func(fd, level, option, value int) {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, level, option, value))
		}
	}
	outer := c.Control(func(f uintptr) {
		fd := int(f)
		set(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		// Only root gets buffers beyond the system's limit. A smaller buffer also works.
		for _, o := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], socketBuffer) != nil {
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], socketBuffer)
			}
		}
		// Anyone can forge a path MTU. It must not make us fragment (RFC 9715 §3.1).
		if ip.Is4() {
			set(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT)
		} else {
			set(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT)
		}
		if wildcard && ip.Is4() {
			set(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		} else if wildcard {
			set(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	})
	return errors.Join(outer, err)
}

// replySource turns the kernel's report of a query's destination into the request to send the reply from there. Both
// use the same structure. The interface is cleared, so routing chooses it, except for link-local addresses, which
// belong to one interface.
func replySource(control []byte) []byte {
	const data = unix.SizeofCmsghdr
	if len(control) < data+unix.SizeofInet4Pktinfo {
		return nil
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	switch {
	case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO:
		clear(control[data : data+4])
	case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO &&
		len(control) >= data+unix.SizeofInet6Pktinfo:
		linkLocal := control[data] == 0xFE && control[data+1]&0xC0 == 0x80
		if !linkLocal {
			clear(control[data+16 : data+20])
		}
	default:
		return nil
	}
	return control
}

// transient reports whether the server can continue to use a socket after err. Such errors were caused by an earlier
// reply (an ICMP error) or by a temporary shortage.
func transient(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case unix.EINTR, unix.ENOMEM, unix.ENOBUFS, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN,
		unix.EHOSTDOWN, unix.EPROTO:
		return true
	}
	return false
}

// batchSize is the largest number of messages in one system call.
const batchSize = 64

// slotSize is the distance between the read buffers of a batch. Each has room for the largest message: a dynamic
// update may be that large, and the kernel cuts off what does not fit. Slots begin at different offsets in their pages,
// so that the first bytes of all messages do not share a few lines of the CPU cache.
const slotSize = 64<<10 + 128

// largeMessage is the size from which a message takes pages of memory that other messages do not use.
const largeMessage = 4 << 10

// newSlots returns the read buffers of a batch: 4 MiB of addresses, of which only the pages with messages take memory.
// They are outside of the Go heap, which would count all of them as used. Huge pages would take memory for all.
func newSlots() ([]byte, error) {
	b, err := unix.Mmap(-1, 0, batchSize*slotSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // fails where the kernel has no huge pages
	return b, nil
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// batch is the memory of one socket: the received messages, and the replies, which reuse the addresses of their
// queries.
type batch struct {
	raw      syscall.RawConn
	received int // number of messages that the last call read
	sent     int
	pending  []mmsghdr // replies not yet sent
	errno    syscall.Errno
	recvFunc func(uintptr) bool
	sendFunc func(uintptr) bool
	waitFunc func(uintptr) bool

	in, out [batchSize]mmsghdr
	iovecs  [2][batchSize]unix.Iovec
	addrs   [batchSize]unix.RawSockaddrInet6 // the larger of the two address types
	control [batchSize][controlSize]byte
	joined  segments
	buffers []byte // from newSlots
	large   bool   // the last call read a large message
	replies []byte // replySize bytes for each reply
}

func newBatch(u *udpSocket, replySize int) (*batch, error) {
	buffers, err := newSlots()
	if err != nil {
		return nil, err
	}
	b := &batch{buffers: buffers, replies: make([]byte, batchSize*replySize)}
	// Method values are created once, because each use would allocate.
	b.recvFunc, b.sendFunc, b.waitFunc = b.recv, b.send, b.sendOrWait
	for i := range b.in {
		b.iovecs[0][i].Base = &b.buffers[i*slotSize]
		b.iovecs[0][i].SetLen(wire.MaxSize)
		b.iovecs[1][i].Base = &b.replies[i*replySize]
		b.in[i].hdr.Iov, b.out[i].hdr.Iov = &b.iovecs[0][i], &b.iovecs[1][i]
		b.in[i].hdr.SetIovlen(1)
		b.out[i].hdr.SetIovlen(1)
		b.in[i].hdr.Name = (*byte)(unsafe.Pointer(&b.addrs[i]))
		b.in[i].hdr.Namelen = unix.SizeofSockaddrInet6
		if u.wildcard {
			b.in[i].hdr.Control = &b.control[i][0]
			b.in[i].hdr.SetControllen(controlSize)
		}
	}
	if b.raw, err = u.conn.SyscallConn(); err == nil {
		err = b.joined.probe(b.raw)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *batch) close() { _ = unix.Munmap(b.buffers) }

// freeLarge returns the pages of large messages to the system, so that a burst of them does not hold memory.
func (b *batch) freeLarge() {
	if b.large {
		b.large = false
		_ = unix.Madvise(b.buffers, unix.MADV_DONTNEED) // fails for no mapping of ours
	}
}

// serveBatches serves a socket until its read deadline. Each step handles all messages that have arrived.
func serveBatches(u *udpSocket, h *handler) error {
	b, err := newBatch(u, h.settings.udpSize)
	if err != nil {
		return err
	}
	defer b.close()
	u.send = sendNow
	for {
		err := b.raw.Read(b.recvFunc)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if b.errno != 0 {
			if transient(b.errno) {
				continue
			}
			return os.NewSyscallError("recvmmsg", b.errno)
		}
		h.start()
		n := b.answer(h, u)
		b.flush(u, h)
		b.freeLarge()
		h.done(n)
	}
}

// recv reads the messages that have arrived. It returns false when there are none, so that RawConn.Read waits.
//
// It uses the raw form of the system call, which does not notify the scheduler. The call never blocks, and with one
// processor the scheduler would give the processor to another thread in the middle of a batch.
func (b *batch) recv(fd uintptr) bool {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.in[0])), batchSize,
		unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN {
		return false
	}
	b.received, b.errno = int(n), errno
	return true
}

// answer writes the replies to all messages that were read, and returns their number.
func (b *batch) answer(h *handler, u *udpSocket) int {
	replySize := h.settings.udpSize
	replies := 0
	for i := range b.in[:b.received] {
		in, out := &b.in[i], &b.out[replies]
		addr, ok := sourceAddr(&b.addrs[i])
		size := 0
		if ok {
			at := replies * replySize
			query := b.buffers[i*slotSize : i*slotSize+int(in.n)]
			b.large = b.large || len(query) > largeMessage
			size = h.answer(query, b.replies[at:at+replySize:at+replySize], client{addr: addr})
		} else {
			h.count.drop(dropPort)
		}
		if size == replyLater {
			size = h.waitUDP(u, b.source(u, i), sourceAddrPort(&b.addrs[i], addr))
		}
		if size > 0 {
			b.iovecs[1][replies].SetLen(size)
			out.hdr.Name, out.hdr.Namelen = in.hdr.Name, in.hdr.Namelen
			if u.wildcard {
				out.hdr.Control = in.hdr.Control
				out.hdr.SetControllen(len(b.source(u, i)))
			}
			replies++
		}
		in.hdr.Namelen = unix.SizeofSockaddrInet6
		if u.wildcard {
			in.hdr.SetControllen(controlSize)
		}
	}
	b.pending = b.joined.join(b.out[:replies])
	return replies
}

// source returns the control message for the reply to query i, or nil.
func (b *batch) source(u *udpSocket, i int) []byte {
	if !u.wildcard {
		return nil
	}
	return replySource(b.control[i][:b.in[i].hdr.Controllen])
}

// sourceAddr returns the address of a client. It returns false when the client must not get a reply.
func sourceAddr(name *unix.RawSockaddrInet6) (netip.Addr, bool) {
	port := (*[2]byte)(unsafe.Pointer(&name.Port)) // same offset in both families, in network byte order
	ok := isClientPort(uint16(port[0])<<8 | uint16(port[1]))
	if name.Family == unix.AF_INET {
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr), ok
	}
	return netip.AddrFrom16(name.Addr), ok
}

// sourceAddrPort returns the address of a client with its port, and with the interface of a link-local address.
func sourceAddrPort(name *unix.RawSockaddrInet6, addr netip.Addr) netip.AddrPort {
	port := (*[2]byte)(unsafe.Pointer(&name.Port))
	if name.Family == unix.AF_INET6 && name.Scope_id != 0 {
		addr = addr.WithZone(strconv.Itoa(int(name.Scope_id)))
	}
	return netip.AddrPortFrom(addr, uint16(port[0])<<8|uint16(port[1]))
}

// sendNow sends a message outside the batches, if the socket's buffer has room. It does not wait for room: a socket
// has one writer at a time, so the wait would also block the batches.
func sendNow(u *udpSocket, message, source []byte, to netip.AddrPort) error {
	raw, err := u.conn.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), message, source, sockaddr(to), unix.MSG_DONTWAIT)
		return true
	})
	return errors.Join(err, os.NewSyscallError("sendmsg", sent))
}

func sockaddr(to netip.AddrPort) unix.Sockaddr {
	if to.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	scope, _ := strconv.ParseUint(to.Addr().Zone(), 10, 32) // written by sourceAddrPort
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16(), ZoneId: uint32(scope)}
}

// flush sends the pending replies. It drops a reply that the kernel refuses. When the kernel's buffer stays full, it
// drops all.
func (b *batch) flush(u *udpSocket, h *handler) {
	for len(b.pending) > 0 {
		if b.raw.Write(b.sendFunc) != nil {
			break
		}
		if b.errno == unix.EAGAIN {
			b.wait(u)
		}
		switch b.errno {
		case 0:
			b.pending = b.pending[b.sent:]
		case unix.EAGAIN:
			for i := range b.pending {
				h.count.dropped[dropSend].Add(uint64(b.pending[i].hdr.Iovlen))
			}
			return
		default:
			b.handleRefused(u, h)
		}
	}
}

// handleRefused drops the first pending reply. Replies that were refused as one segmented message are sent one by
// one.
func (b *batch) handleRefused(u *udpSocket, h *handler) {
	first, rest := &b.pending[0], b.pending[1:]
	if first.isSegmented() {
		b.pending = b.joined.split(first, b.errno)
		b.flush(u, h)
	} else {
		h.count.drop(dropSend)
	}
	b.pending = rest
}

func (b *batch) send(fd uintptr) bool {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.pending[0])),
		uintptr(len(b.pending)), unix.MSG_DONTWAIT, 0, 0)
	b.sent, b.errno = int(n), errno
	return true
}

func (b *batch) sendOrWait(fd uintptr) bool {
	b.send(fd)
	return b.errno != unix.EAGAIN
}

// wait tries to send until the buffer has room, but no longer than sendTimeout.
func (b *batch) wait(u *udpSocket) {
	u.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	_ = b.raw.Write(b.waitFunc) // the result is in b.errno
	u.conn.SetWriteDeadline(time.Time{})
}
