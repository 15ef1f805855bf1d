//go:build !linux

package dnsserver

import (
	"errors"
	"net/netip"
	"syscall"
)

// reusePort says whether the kernel spreads clients between sockets of one address. Elsewhere than on Linux that
// differs too much, so workers share one.
const reusePort = false

func controlUDP(syscall.RawConn, netip.Addr, bool) error { return nil }

func serveBatches(u *udpSocket, h *handler) error { return servePortable(u, h) }

// replySource is nothing here: a reply from a socket of all addresses leaves from the address that the route has.
// Machines with several addresses are to list them in Config.Listen.
func replySource([]byte) []byte { return nil }

// transient reports whether a socket can be read on after an error: one that an earlier reply met on its way.
func transient(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
