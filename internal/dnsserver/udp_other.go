//go:build !linux

package dnsserver

import (
	"errors"
	"net/netip"
	"syscall"
)

// reusePort says whether the kernel spreads clients over sockets of one address. Outside Linux the behaviour differs
// too much between systems, so workers share one socket.
const reusePort = false

func controlUDP(syscall.RawConn, netip.Addr, bool) error { return nil }

// controlTCP sets no options: other systems do not have all of those that Linux has.
func controlTCP(string, string, syscall.RawConn) error { return nil }

func serveBatches(u *udpSocket, h *handler) error { return servePortable(u, h) }

// replySource returns nil: a reply from a socket of all addresses leaves from the address that the route chooses.
// Machines with several addresses must list them in Config.Listen.
func replySource([]byte) []byte { return nil }

// transient reports whether the server can continue to read a socket after err: an ICMP error that an earlier reply
// caused.
func transient(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
