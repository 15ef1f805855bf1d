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

// rrHeader is the size of the fields before the RDATA when the owner is the root: one byte for the owner, then type,
// class, TTL and length.
const rrHeader = 1 + 10

var errLong = errors.New("record data is longer than 65535 bytes")

// ParseData parses RDATA of type t in presentation form. Names in it are fully qualified, with or without their final
// dot. The form `\# length hex` of RFC 3597 works for every type.
func ParseData(t Type, text string) (string, error) {
	return ParseDataIn(t, text, dnsname.Root)
}

// ParseDataIn is like ParseData, but names without a final dot are relative to origin. With the zero origin they are
// errors. Errors are of type *SyntaxError.
func ParseDataIn(t Type, text string, origin dnsname.Name) (string, error) {
	if !t.IsData() {
		return "", &SyntaxError{0, fmt.Sprintf("records of type %s cannot be stored", t)}
	}
	if err := checkText(text); err != nil {
		return "", err
	}
	trimmed := strings.Trim(text, " \t")
	if hexText, ok := strings.CutPrefix(trimmed, `\#`); ok {
		d, err := parseUnknown(t, hexText)
		if err != nil {
			return "", &SyntaxError{strings.Index(text, `\#`), err.Error()}
		}
		return d, nil
	}
	if trimmed == "" && t != typeAPL {
		return "", &SyntaxError{len(text), fmt.Sprintf("%s record ends too early: its data is not complete", t)}
	}
	if t == TypeA || t == TypeAAAA {
		return parseAddr(t, text, trimmed)
	}
	if d, ok := parsePlain(t, trimmed, origin); ok {
		return d, nil
	}
	if t == TypeALIAS {
		d, err := parseOther(TypeCNAME, text, origin)
		return d, asAlias(err)
	}
	if t == typeNAPTR {
		return parseNAPTR(text, origin)
	}
	return parseOther(t, text, origin)
}

// parsePlain parses host names with 16-bit numbers before them, as in nearly all NS, CNAME, PTR, MX and SRV data. It
// is six times as fast as the library. It returns false for everything unusual, and for errors, and leaves both to
// the library.
func parsePlain(t Type, text string, origin dnsname.Name) (string, bool) {
	at, ok := nameAt(t)
	if !ok {
		return "", false
	}
	buf := make([]byte, 0, at+dnsname.MaxWire+1)
	for range at / 2 {
		word, rest, _ := strings.Cut(text, " ")
		n, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			return "", false
		}
		buf = binary.BigEndian.AppendUint16(buf, uint16(n))
		text = strings.TrimLeft(rest, " ")
	}
	for text != "" {
		label, rest, dot := strings.Cut(text, ".")
		if label == "" || len(label) > dnsname.MaxLabel || len(buf)+1+len(label) > at+dnsname.MaxWire {
			return "", false
		}
		for i := range len(label) {
			if !isHost(label[i]) {
				return "", false
			}
		}
		buf = append(append(buf, byte(len(label))), label...)
		if text = rest; text == "" && dot {
			origin = dnsname.Root
		}
	}
	if origin.IsZero() || len(buf) == at || len(buf)+len(origin.Wire()) > at+dnsname.MaxWire {
		return "", false
	}
	return string(buf) + origin.Wire(), true
}

func isHost(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// parseAddr parses addresses, which are most records, without the library.
func parseAddr(t Type, text, trimmed string) (string, error) {
	a, err := netip.ParseAddr(trimmed)
	switch {
	case err == nil && t == TypeA && a.Is4():
		b := a.As4()
		return string(b[:]), nil
	case err == nil && t == TypeAAAA && a.Is6() && a.Zone() == "":
		b := a.As16()
		return string(b[:]), nil
	}
	first, rest, _ := strings.Cut(trimmed, " ")
	if a, err := netip.ParseAddr(first); err == nil && a.Is4() == (t == TypeA) && a.Zone() == "" {
		rest = strings.Trim(rest, " \t")
		return "", &SyntaxError{strings.LastIndex(text, rest),
			fmt.Sprintf("unexpected %s after the data of the %s record", quoted(rest), t)}
	}
	family := "IPv4"
	if t == TypeAAAA {
		family = "IPv6"
	}
	return "", &SyntaxError{strings.Index(text, trimmed),
		fmt.Sprintf("%s record: %s is not an %s address", t, quoted(trimmed), family)}
}

// parseOther parses one line with a new parser, so that no state leaks from one record into another. $INCLUDE is off;
// dns.NewRR leaves it on.
func parseOther(t Type, text string, origin dnsname.Name) (string, error) {
	before := ". 0 IN " + t.String() + " "
	zp := dns.NewZoneParser(strings.NewReader(before+text+"\n"), origin.String(), "")
	rec, ok := zp.Next()
	if err := zp.Err(); err != nil {
		return "", reword(t, text, len(before), err)
	}
	if !ok {
		return "", &SyntaxError{0, fmt.Sprintf("%s record has no data", t)}
	}
	if _, more := zp.Next(); more || zp.Err() != nil {
		return "", &SyntaxError{0, fmt.Sprintf("%s record: the data goes on after its end", t)}
	}
	d, err := FromRR(rec)
	if err != nil {
		return "", &SyntaxError{0, err.Error()}
	}
	return d, nil
}

// asAlias rewords an error about the name in an ALIAS, which the library reads as a CNAME.
func asAlias(err error) error {
	if s, ok := errors.AsType[*SyntaxError](err); ok {
		return &SyntaxError{s.Offset, strings.ReplaceAll(s.Reason, "CNAME", "ALIAS")}
	}
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "CNAME", "ALIAS"))
	}
	return nil
}

// parseUnknown parses the text after `\#` in the form of RFC 3597: a length, then hex in any number of parts. The
// library would accept a length that contradicts a known type.
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
		return "", fmt.Errorf(`%s record: \# announces %d bytes and carries %d`, t, n, len(d))
	}
	return string(d), Check(t, string(d))
}

// reason returns the library's message without its prefixes.
func reason(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, "dns: "); i >= 0 {
		s = s[i+len("dns: "):]
	}
	return s
}

// FromRR returns the RDATA of rec, which Check accepts. The library packs some values that it cannot unpack.
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
			return rdata(Type(rec.Header().Rrtype), buf[:end])
		}
		if len(buf) > 2*MaxData {
			return "", fmt.Errorf("%s record: %s", Type(rec.Header().Rrtype), reason(err))
		}
		buf = make([]byte, 4*len(buf))
	}
}

func rdata(t Type, rec []byte) (string, error) {
	_, n, err := dnsname.FromWire(rec)
	if err != nil {
		return "", err
	}
	d := rec[n+10:]
	if len(d) > MaxData {
		return "", errLong
	}
	if err := Check(t, string(d)); err != nil {
		return "", err
	}
	return string(d), nil
}

func unpack(t Type, data string) (dns.RR, error) {
	if len(data) > MaxData {
		return nil, errLong
	}
	b := make([]byte, rrHeader, rrHeader+len(data))
	binary.BigEndian.PutUint16(b[1:], uint16(t))
	binary.BigEndian.PutUint16(b[3:], dns.ClassINET)
	binary.BigEndian.PutUint16(b[9:], uint16(len(data)))
	rec, off, err := dns.UnpackRR(append(b, data...), 0)
	if err != nil {
		return nil, fmt.Errorf("%s record: the data does not fit the type (%s)", t, reason(err))
	}
	if off != rrHeader+len(data) {
		return nil, fmt.Errorf("%s record: data goes on after its end", t)
	}
	return rec, nil
}

// Check returns an error unless data is valid, uncompressed RDATA of type t. It packs the unpacked data again and
// compares the bytes. That detects a compression pointer, which has a meaning only inside its message.
func Check(t Type, data string) error {
	if t == TypeALIAS {
		return asAlias(Check(TypeCNAME, data))
	}
	_, known := dns.TypeToRR[uint16(t)]
	rec, err := unpack(t, data)
	if err != nil || !known {
		return err
	}
	if IsCut(rec) {
		if data == "" {
			return fmt.Errorf("%s record has no data", t)
		}
		return fmt.Errorf("%s record: the data ends too early", t)
	}
	b := make([]byte, rrHeader+len(data))
	if end, err := dns.PackRR(rec, b, 0, nil, false); err != nil || string(b[rrHeader:end]) != data {
		return fmt.Errorf("%s record: the data is not in its plain wire form", t)
	}
	return nil
}

const (
	typeAPL   = Type(dns.TypeAPL) // may be empty (RFC 3123 §4)
	typeNAPTR = Type(dns.TypeNAPTR)
)

// DataText returns RDATA in presentation form, on one line, which ParseData reads back. Data that is not valid for
// its type is written in the form of RFC 3597 for unknown types.
func DataText(t Type, data string) string {
	switch {
	case t == TypeA && len(data) == 4, t == TypeAAAA && len(data) == 16:
		a, _ := netip.AddrFromSlice([]byte(data))
		if !a.Is4In6() { // the library prints these in full, and they read back as the same bytes
			return a.String()
		}
	}
	if text, ok := plainText(t, data); ok {
		return text
	}
	return otherText(t, data)
}

// plainText is the inverse of parsePlain.
func plainText(t Type, data string) (string, bool) {
	at, ok := nameAt(t)
	if !ok || len(data) < at || len(data) > at+dnsname.MaxWire {
		return "", false
	}
	b := make([]byte, 0, len(data)+6*at)
	for i := 0; i < at; i += 2 {
		b = strconv.AppendUint(b, uint64(data[i])<<8|uint64(data[i+1]), 10)
		b = append(b, ' ')
	}
	for name := data[at:]; ; {
		if name == "\x00" && len(data) > at+1 {
			return string(b), true
		}
		if name == "" || name[0] == 0 || int(name[0]) > min(dnsname.MaxLabel, len(name)-1) {
			return "", false // the root, or not a name
		}
		label := name[1 : 1+name[0]]
		for i := range len(label) {
			if !isHost(label[i]) {
				return "", false
			}
		}
		b = append(append(b, label...), '.')
		name = name[1+len(label):]
	}
}

// otherText returns the library's text, when that reads back as the same data.
func otherText(t Type, data string) string {
	if t == TypeALIAS {
		return otherText(TypeCNAME, data)
	}
	if len(data) > maxList(t) {
		return unknownText(data)
	}
	rec, err := unpack(t, data)
	if err != nil {
		return unknownText(data)
	}
	text := strings.TrimSpace(strings.TrimPrefix(rec.String(), rec.Header().String()))
	if back, err := ParseData(t, text); err != nil || back != data || text == "" {
		return unknownText(data) // some types have bytes that their text cannot represent
	}
	return text
}

// maxList returns the size of the longest data that the library may turn into text. It joins lists word by word, in
// quadratic time: 20 s for a bitmap of all 65,536 types, which fits in 8.7 kB of data. Names and bitmaps in use are
// below 400 bytes. Host identities with their servers, and service parameters, are below 2,000.
func maxList(t Type) int {
	switch uint16(t) {
	case dns.TypeNSEC, dns.TypeNSEC3, dns.TypeCSYNC, dns.TypeNXT:
		return 512
	case dns.TypeHIP, dns.TypeSVCB, dns.TypeHTTPS:
		return 4096
	}
	return MaxData
}

func unknownText(data string) string {
	if data == "" {
		return `\# 0`
	}
	return fmt.Sprintf(`\# %d %s`, len(data), hex.EncodeToString([]byte(data)))
}
