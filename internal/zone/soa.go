package zone

import (
	"encoding/binary"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// SOA is the data of an SOA record (RFC 1035 §3.3.13).
type SOA struct {
	MName, RName                            dnsname.Name
	Serial, Refresh, Retry, Expire, Minimum uint32
}

// ParseSOA parses SOA data in wire form.
func ParseSOA(data string) (SOA, bool) {
	m, n, err := dnsname.FromWire([]byte(data))
	if err != nil {
		return SOA{}, false
	}
	r, k, err := dnsname.FromWire([]byte(data[n:]))
	if err != nil || len(data) != n+k+20 {
		return SOA{}, false
	}
	f := []byte(data[n+k:])
	num := func(i int) uint32 { return binary.BigEndian.Uint32(f[4*i:]) }
	return SOA{m, r, num(0), num(1), num(2), num(3), num(4)}, true
}

// Data returns s in wire form.
func (s SOA) Data() string {
	b := []byte(s.MName.Wire() + s.RName.Wire())
	for _, v := range []uint32{s.Serial, s.Refresh, s.Retry, s.Expire, s.Minimum} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return string(b)
}

// WithSerial returns SOA data with another serial. The letter case of its names does not change.
func WithSerial(data string, serial uint32) string {
	if len(data) < 20 {
		return data
	}
	at := len(data) - 20
	return data[:at] + string(binary.BigEndian.AppendUint32(nil, serial)) + data[at+4:]
}

// Mailbox returns the RNAME of an SOA as an email address.
func Mailbox(rname dnsname.Name) string {
	if rname.IsRoot() {
		return ""
	}
	return rname.Label() + "@" + strings.TrimSuffix(rname.Parent().String(), ".")
}

// MailboxName returns an email address as the RNAME of an SOA. Dots of the local part stay inside the first label.
func MailboxName(email string) (dnsname.Name, bool) {
	local, domain, ok := strings.Cut(email, "@")
	if !ok || local == "" || strings.Contains(domain, "@") {
		return dnsname.Name{}, false
	}
	d, err := dnsname.Parse(domain)
	if err != nil || d.IsRoot() {
		return dnsname.Name{}, false
	}
	n, err := d.Child(local)
	return n, err == nil
}
