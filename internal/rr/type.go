package rr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Type is an RR type, or a QTYPE.
type Type uint16

// Types that the program handles by name. All other types are plain data.
const (
	TypeA     = Type(dns.TypeA)
	TypeNS    = Type(dns.TypeNS)
	TypeCNAME = Type(dns.TypeCNAME)
	TypeSOA   = Type(dns.TypeSOA)
	TypePTR   = Type(dns.TypePTR)
	TypeMX    = Type(dns.TypeMX)
	TypeTXT   = Type(dns.TypeTXT)
	TypeAFSDB = Type(dns.TypeAFSDB)
	TypeRT    = Type(dns.TypeRT)
	TypeAAAA  = Type(dns.TypeAAAA)
	TypeSRV   = Type(dns.TypeSRV)
	TypeKX    = Type(dns.TypeKX)
	TypeDNAME = Type(dns.TypeDNAME)
	TypeOPT   = Type(dns.TypeOPT)
	TypeDS    = Type(dns.TypeDS)
	TypeRRSIG = Type(dns.TypeRRSIG)
	TypeNSEC  = Type(dns.TypeNSEC)
	TypeTSIG  = Type(dns.TypeTSIG)
	TypeIXFR  = Type(dns.TypeIXFR)
	TypeAXFR  = Type(dns.TypeAXFR)
	TypeMAILB = Type(dns.TypeMAILB)
	TypeMAILA = Type(dns.TypeMAILA)
	TypeANY   = Type(dns.TypeANY)
)

// TypeALIAS refers to the addresses of another name (docs/designs/007-alias.md). Zones store it, and servers never
// send it. The number is in the range for private use (RFC 6895 §3.1), and PowerDNS uses the same one.
const TypeALIAS Type = 65401

// String returns the mnemonic, or TYPEnnn (RFC 3597 §5) for a type without one.
func (t Type) String() string {
	if t == TypeALIAS {
		return "ALIAS"
	}
	if s, ok := dns.TypeToString[uint16(t)]; ok && s != "None" && s != "Reserved" {
		return s
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// ParseType parses a mnemonic in any case, or TYPEnnn.
func ParseType(s string) (Type, error) {
	up := strings.ToUpper(s)
	if up == "ALIAS" {
		return TypeALIAS, nil
	}
	if t, ok := dns.StringToType[up]; ok && up != "NONE" && up != "RESERVED" {
		return Type(t), nil
	}
	if num, ok := strings.CutPrefix(up, "TYPE"); ok {
		if n, err := strconv.ParseUint(num, 10, 16); err == nil {
			return Type(n), nil
		}
	}
	return 0, fmt.Errorf("unknown record type %q", s)
}

// MarshalText implements encoding.TextMarshaler. It returns the mnemonic, or TYPEnnn.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what ParseType accepts.
func (t *Type) UnmarshalText(text []byte) (err error) {
	*t, err = ParseType(string(text))
	return err
}

// IsData reports whether a zone can store records of this type. It returns false for QTYPEs, for types that exist
// only in messages (RFC 6895 §3.1), and for type 0.
func (t Type) IsData() bool {
	return t != 0 && t != TypeOPT && (t < 128 || t > 255)
}
