package main

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// askIO reads and writes several messages of one socket with one system call.
type askIO struct {
	in, out   [askAtOnce]mmsghdr
	buffers   [askAtOnce][askReply]byte
	inParts   [askAtOnce]unix.Iovec
	outParts  [askAtOnce]unix.Iovec
	cut       [askAtOnce][]byte // control messages
	segmented bool              // the kernel sends several messages as one (UDP_SEGMENT)
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

func (a *askIO) init(fd int) {
	a.segmented = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil
	for i := range a.in {
		a.inParts[i].Base = &a.buffers[i][0]
		a.inParts[i].SetLen(askReply)
		a.in[i].hdr.Iov = &a.inParts[i]
		a.in[i].hdr.SetIovlen(1)
		a.cut[i] = make([]byte, unix.CmsgSpace(2))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&a.cut[i][0]))
		h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		h.SetLen(unix.CmsgLen(2))
	}
}

// receive returns the number of replies that have arrived. It does not wait.
func (a *askIO) receive(fd int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&a.in[0])), askAtOnce,
		unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("recvmmsg", errno)
}

// reply returns one of the replies just received.
func (a *askIO) reply(k int) []byte { return a.buffers[k][:a.in[k].n] }

// add makes a message the k-th to send.
func (a *askIO) add(k int, message []byte) {
	a.outParts[k].Base = &message[0]
	a.outParts[k].SetLen(len(message))
}

// send sends the first n messages. Messages of one size go together: the client must take less CPU for a question
// than the server, or the client is the limit.
func (a *askIO) send(fd, n int) error {
	if a.segmented {
		slices.SortFunc(a.outParts[:n], func(x, y unix.Iovec) int { return cmp.Compare(y.Len, x.Len) })
	}
	messages := 0
	for from := 0; from < n; messages++ {
		k := a.runLength(a.outParts[from:n])
		h := &a.out[messages].hdr
		h.Iov = &a.outParts[from]
		h.SetIovlen(k)
		h.Control = nil
		h.SetControllen(0)
		if k > 1 {
			control := a.cut[messages]
			binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(h.Iov.Len))
			h.Control = &control[0]
			h.SetControllen(len(control))
		}
		from += k
	}
	for sent := 0; sent < messages; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&a.out[sent])),
			uintptr(messages-sent), 0, 0, 0)
		if errno != 0 && errno != unix.EINTR {
			return os.NewSyscallError("sendmmsg", errno)
		}
		sent += int(n)
	}
	return nil
}

// runLength returns how many of the messages the kernel can send as one: those of the first one's size, and perhaps a
// smaller one.
func (a *askIO) runLength(parts []unix.Iovec) int {
	if !a.segmented {
		return 1
	}
	n := 1
	for n < len(parts) && parts[n].Len == parts[0].Len {
		n++
	}
	return min(n+1, len(parts))
}
