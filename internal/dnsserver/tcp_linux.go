package dnsserver

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// controlTCP sets the options of a listener that its connections get from it. It is the Control of a net.ListenConfig.
func controlTCP(_, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) {
		err = errors.Join(
			os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, SendBuffer)),
			os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
				int(sendTime.Milliseconds()))))
	})
	return errors.Join(outer, err)
}
