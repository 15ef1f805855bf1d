package rr

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// rrHeader is the size of what stands before the RDATA when the owner is the root: one octet of owner, then type,
// class, TTL and length.
const rrHeader = 1 + 10

// ParseData reads RDATA of type t in presentation form. Names in it are fully qualified, with or without their
// final dot. RFC 3597's `\# length hex` works for every type.
func ParseData(t Type, text string) (string, error) {
	if strings.ContainsAny(text, "\r\n") {
		return "", errors.New("record data has a line break") // it would end the record and begin another one
	}
	if !t.IsData() {
		return "", fmt.Errorf("records of type %s cannot be stored", t)
	}
	if hexText, ok := strings.CutPrefix(strings.TrimSpace(text), `\#`); ok {
		return parseUnknown(t, hexText)
	}
	switch t { // most of the world's records, without a parser
	case TypeA, TypeAAAA:
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Zone() == "" {
			if t == TypeA && a.Is4() || t == TypeAAAA && a.Is6() {
				return string(a.AsSlice()), nil
			}
			return "", fmt.Errorf("%q is not an address of type %s", text, t)
		}
	}
	rec, err := dns.NewRR(". 0 IN " + t.String() + " " + text)
	if err != nil {
		return "", fmt.Errorf("%s record %q: %s", t, text, reason(err))
	}
	if rec == nil {
		return "", fmt.Errorf("%s record has no data", t)
	}
	return FromRR(rec)
}

// parseUnknown reads what follows `\#` in RFC 3597's form: a length, then hex in any number of pieces. The library
// would take a length that a known type contradicts.
func parseUnknown(t Type, text string) (string, error) {
	f := strings.Fields(text)
	if len(f) == 0 {
		return "", fmt.Errorf(`%s record: \# wants a length and hexadecimal data`, t)
	}
	n, err := strconv.ParseUint(f[0], 10, 16)
	if err != nil {
		return "", fmt.Errorf(`%s record: \# wants a length from 0 to 65535, not %q`, t, f[0])
	}
	d, err := hex.DecodeString(strings.Join(f[1:], ""))
	if err != nil {
		return "", fmt.Errorf(`%s record: the data after \# is not hexadecimal`, t)
	}
	if len(d) != int(n) {
		return "", fmt.Errorf(`%s record: \# announces %d octets and carries %d`, t, n, len(d))
	}
	return string(d), Check(t, string(d))
}

// reason is the part of a parser's message that speaks of the data, without the position in our made-up line.
func reason(err error) string {
	s := strings.TrimPrefix(err.Error(), "dns: ")
	if i := strings.LastIndex(s, " at line: "); i > 0 {
		s = s[:i]
	}
	return s
}

// FromRR is the RDATA of rec.
func FromRR(rec dns.RR) (string, error) {
	switch r := rec.(type) {
	case *dns.A:
		if a := r.A.To4(); a != nil {
			return string(a), nil
		}
	case *dns.AAAA:
		if len(r.AAAA) == 16 {
			return string(r.AAAA), nil
		}
	}
	buf := make([]byte, 512)
	for {
		end, err := dns.PackRR(rec, buf, 0, nil, false)
		if err == nil {
			return rdata(buf[:end])
		}
		if len(buf) > 2*MaxData {
			return "", fmt.Errorf("%s record: %s", Type(rec.Header().Rrtype), reason(err))
		}
		buf = make([]byte, 4*len(buf))
	}
}

func rdata(rec []byte) (string, error) {
	_, n, err := dnsname.FromWire(rec)
	if err != nil {
		return "", err
	}
	d := rec[n+10:]
	if len(d) > MaxData {
		return "", errors.New("record data is longer than 65535 octets")
	}
	return string(d), nil
}

// ToRR is the record that a message of the miekg/dns library carries.
func ToRR(name dnsname.Name, t Type, ttl uint32, data string) (dns.RR, error) {
	rec, err := unpack(t, data)
	if err != nil {
		return nil, err
	}
	rec.Header().Name = name.String()
	rec.Header().Ttl = ttl
	return rec, nil
}

func unpack(t Type, data string) (dns.RR, error) {
	b := make([]byte, rrHeader, rrHeader+len(data))
	binary.BigEndian.PutUint16(b[1:], uint16(t))
	binary.BigEndian.PutUint16(b[3:], dns.ClassINET)
	binary.BigEndian.PutUint16(b[9:], uint16(len(data)))
	rec, off, err := dns.UnpackRR(append(b, data...), 0)
	if err != nil {
		return nil, fmt.Errorf("%s record: %w", t, err)
	}
	if off != rrHeader+len(data) {
		return nil, fmt.Errorf("%s record: data goes on after its end", t)
	}
	return rec, nil
}

// Check reports whether data is well-formed RDATA of type t.
func Check(t Type, data string) error {
	_, err := unpack(t, data)
	return err
}

// DataText is RDATA in presentation form, on one line; ParseData reads it back. Data that its type cannot read is
// written as RFC 3597 does for unknown types.
func DataText(t Type, data string) string {
	switch {
	case t == TypeA && len(data) == 4, t == TypeAAAA && len(data) == 16:
		a, _ := netip.AddrFromSlice([]byte(data))
		if !a.Is4In6() { // the library prints these in full, and they read back as the same octets
			return a.String()
		}
	}
	rec, err := unpack(t, data)
	if err != nil {
		return unknownText(data)
	}
	text := strings.TrimSpace(strings.TrimPrefix(rec.String(), rec.Header().String()))
	if back, err := ParseData(t, text); err != nil || back != data {
		return unknownText(data) // some types have octets that their text cannot carry
	}
	return text
}

func unknownText(data string) string {
	return fmt.Sprintf(`\# %d %s`, len(data), hex.EncodeToString([]byte(data)))
}
