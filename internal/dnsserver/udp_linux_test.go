package dnsserver

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestSourceOf(t *testing.T) {
	tests := []struct {
		addr string
		port uint16
		ok   bool
	}{
		{"192.0.2.1", 5353, true}, {"2001:db8::1", 5353, true},
		{"192.0.2.1", 0, false}, {"2001:db8::1", 0, false},
		{"192.0.2.1", 7, false}, {"2001:db8::1", 19, false},
		{"192.0.2.1", 7 << 8, true}, // 7 in the other order of octets
	}
	for _, tt := range tests {
		var name unix.RawSockaddrInet6
		addr := netip.MustParseAddr(tt.addr)
		if addr.Is4() {
			v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&name))
			v4.Family, v4.Addr = unix.AF_INET, addr.As4()
		} else {
			name.Family, name.Addr = unix.AF_INET6, addr.As16()
		}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], tt.port)
		if got, ok := sourceOf(&name); got != addr || ok != tt.ok {
			t.Errorf("sourceOf(%s port %d) = %s, %v; want %v", tt.addr, tt.port, got, ok, tt.ok)
		}
	}
}
