package dnsserver

import (
	"encoding/binary"
	"net/netip"

	"github.com/dchest/siphash"
)

// Sizes and ages, in seconds, of RFC 9018 §4.
const (
	clientCookieSize = 8
	cookieSize       = clientCookieSize + 16
	cookieVersion    = 1

	cookieMaxAge   = 3600
	cookieMaxAhead = 300 // clocks of servers that share a secret differ
	cookieRenewAge = 1800
)

// cookieSecret keys the hash. Servers behind one address must share it.
type cookieSecret struct{ k0, k1 uint64 }

func newCookieSecret(b [16]byte) cookieSecret {
	return cookieSecret{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// cookieLength reports whether a cookie option may have n bytes: a client cookie alone, or with a server cookie of 8
// to 32 bytes (RFC 7873 §4).
func cookieLength(n int) bool {
	return n == clientCookieSize || n >= clientCookieSize+8 && n <= clientCookieSize+32
}

// check reports whether a cookie option holds a recent server cookie of ours for this address. It writes the cookie
// for the reply to out: the same while it is fresh, otherwise a new one.
func (s cookieSecret) check(option []byte, addr netip.Addr, now uint32, out *[cookieSize]byte) bool {
	if len(option) == cookieSize && option[8] == cookieVersion {
		stamp := binary.BigEndian.Uint32(option[12:])
		age := int32(now - stamp) // RFC 9018 §4.3: serial number arithmetic
		copy(out[:], option)
		if age <= cookieMaxAge && age >= -cookieMaxAhead && s.hash(out, addr) == binary.LittleEndian.Uint64(option[16:]) {
			if age > cookieRenewAge {
				s.make(option, addr, now, out)
			}
			return true
		}
	}
	s.make(option, addr, now, out)
	return false
}

// make writes the cookie option for a client cookie: version, three reserved bytes, the time, the hash.
func (s cookieSecret) make(client []byte, addr netip.Addr, now uint32, out *[cookieSize]byte) {
	copy(out[:clientCookieSize], client)
	binary.BigEndian.PutUint32(out[8:], cookieVersion<<24)
	binary.BigEndian.PutUint32(out[12:], now)
	binary.LittleEndian.PutUint64(out[16:], s.hash(out, addr))
}

// hash returns SipHash-2-4 over the first 16 bytes of the option and the client's address.
func (s cookieSecret) hash(option *[cookieSize]byte, addr netip.Addr) uint64 {
	var b [32]byte
	n := copy(b[:], option[:16])
	if addr.Is4() {
		ip := addr.As4()
		n += copy(b[n:], ip[:])
	} else {
		ip := addr.As16()
		n += copy(b[n:], ip[:])
	}
	return siphash.Hash(s.k0, s.k1, b[:n])
}
