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
		{"192.0.2.1", 7 << 8, true}, // 7 in the other byte order
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
		if got, ok := sourceAddr(&name); got != addr || ok != tt.ok {
			t.Errorf("sourceOf(%s port %d) = %s, %v; want %v", tt.addr, tt.port, got, ok, tt.ok)
		}
	}
}

// TestLinkLocalClients checks that a delayed reply uses the interface of a client with a link-local address.
func TestLinkLocalClients(t *testing.T) {
	name := unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: netip.MustParseAddr("fe80::1").As16(), Scope_id: 7}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], 5353)
	addr, _ := sourceAddr(&name)
	to := sourceAddrPort(&name, addr)
	if want := netip.MustParseAddrPort("[fe80::1%7]:5353"); to != want {
		t.Errorf("portOf = %v, want %v", to, want)
	}
	got, ok := sockaddr(to).(*unix.SockaddrInet6)
	if !ok || got.ZoneId != 7 || got.Port != 5353 || got.Addr != name.Addr {
		t.Errorf("sockaddr = %+v", got)
	}
	if v4, ok := sockaddr(netip.MustParseAddrPort("192.0.2.1:53")).(*unix.SockaddrInet4); !ok || v4.Port != 53 ||
		v4.Addr != [4]byte{192, 0, 2, 1} {
		t.Errorf("sockaddr = %+v", v4)
	}
}

// TestLargeMessagesFreeMemory checks that the memory of large messages is returned, and that of small ones is kept.
func TestLargeMessagesFreeMemory(t *testing.T) {
	buffers, err := newSlots()
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{buffers: buffers}
	defer b.close()
	last := len(b.buffers) - 1
	b.buffers[last] = 1
	if b.freeLarge(); b.buffers[last] != 1 {
		t.Error("the memory was returned without a large message")
	}
	b.large = true
	if b.freeLarge(); b.buffers[last] != 0 || b.large { // a freed page is read as zeros
		t.Error("the memory of a large message is kept")
	}
}
