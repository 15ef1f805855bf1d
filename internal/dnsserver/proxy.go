package dnsserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// The PROXY protocol, version 2 (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, section 2.2): a proxy
// writes the addresses of its client before each datagram, or once at the start of a TCP connection.
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyFixed     = 16 // signature, version and command, family and protocol, length of the rest

	// maxProxyRest limits the addresses and the fields after them, which the server ignores. TLS proxies write the names
	// of a client's certificate there.
	maxProxyRest = 2048

	proxyLocal   = 0x20 // version 2, the proxy's own connection: a health check
	proxyForward = 0x21 // version 2, the connection of a client

	proxyIPv4 = 1 // address families
	proxyIPv6 = 2
)

var (
	errNotProxy = errors.New("the sender is not a proxy of the configuration")
	errProxy    = errors.New("no PROXY header of version 2 with the address of a client")
)

func contains(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// proxyLength returns the size of the header that begins with b, which has at least proxyFixed bytes.
func proxyLength(b []byte) (int, error) {
	if string(b[:len(proxySignature)]) != proxySignature || b[12] != proxyLocal && b[12] != proxyForward {
		return 0, errProxy
	}
	rest := int(binary.BigEndian.Uint16(b[14:]))
	if rest > maxProxyRest {
		return 0, fmt.Errorf("a PROXY header of %d bytes is too large", rest)
	}
	return proxyFixed + rest, nil
}

// cutProxy returns the client's address in the header that begins b, and the bytes after the header. The address is
// invalid when the proxy speaks for itself.
//
// The protocol in the header may be another than the one it came over: a proxy can forward queries from TCP over UDP.
func cutProxy(b []byte) (client netip.Addr, rest []byte, err error) {
	if len(b) < proxyFixed {
		return netip.Addr{}, nil, errProxy
	}
	n, err := proxyLength(b)
	if err != nil {
		return netip.Addr{}, nil, err
	}
	if len(b) < n {
		return netip.Addr{}, nil, errProxy
	}
	addresses, rest := b[proxyFixed:n], b[n:]
	switch family := b[13] >> 4; {
	case b[12] == proxyLocal:
		return netip.Addr{}, rest, nil
	case family == proxyIPv4 && len(addresses) >= 12:
		return netip.AddrFrom4([4]byte(addresses)), rest, nil
	case family == proxyIPv6 && len(addresses) >= 36:
		return netip.AddrFrom16([16]byte(addresses)).Unmap(), rest, nil
	}
	return netip.Addr{}, nil, errProxy
}

// readProxy reads a header from a connection, and no byte after it. The address is invalid when the proxy speaks for
// itself.
func readProxy(r io.Reader) (netip.Addr, error) {
	header := make([]byte, proxyFixed, proxyFixed+64)
	if _, err := io.ReadFull(r, header); err != nil {
		return netip.Addr{}, err
	}
	n, err := proxyLength(header)
	if err != nil {
		return netip.Addr{}, err
	}
	header = slices.Grow(header, n-proxyFixed)[:n]
	if _, err := io.ReadFull(r, header[proxyFixed:]); err != nil {
		return netip.Addr{}, err
	}
	client, _, err := cutProxy(header)
	return client, err
}

// unwrap removes the PROXY header of a datagram, and returns the address of the client. It returns false for a datagram
// that does not come from a proxy.
func (u *udpSocket) unwrap(b []byte, from netip.AddrPort) (netip.Addr, []byte, bool) {
	proxy := from.Addr().Unmap().WithZone("")
	if !contains(u.proxies, proxy) || !isClientPort(from.Port()) {
		return netip.Addr{}, nil, false
	}
	addr, message, err := cutProxy(b)
	if !addr.IsValid() {
		addr = proxy
	}
	return addr, message, err == nil
}
