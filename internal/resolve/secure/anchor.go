package secure

import (
	"fmt"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Anchor is a DS record that is trusted without a signature of a parent.
type Anchor struct {
	Zone       dnsname.Name `json:"zone"`
	KeyTag     uint16       `json:"keyTag"`
	Algorithm  uint8        `json:"algorithm"`
	DigestType uint8        `json:"digestType"`
	Digest     string       `json:"digest"` // in hex
}

// rootAnchors are the DS records of the root key signing keys of 2017 and 2024, as published by IANA.
var rootAnchors = []string{
	". DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D",
	". DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16",
}

// RootAnchors returns the trust anchors of the public DNS.
func RootAnchors() (out []Anchor) {
	for _, text := range rootAnchors {
		a, err := ParseAnchor(text)
		if err != nil {
			panic(err)
		}
		out = append(out, a)
	}
	return out
}

// UnsignedRoot replaces the trust anchors of a root that is not signed. It is the DS record by which a zone asks its
// parent to delete the others (RFC 8078 §4).
func UnsignedRoot() Anchor { return Anchor{Zone: dnsname.Root, Digest: "00"} }

// ParseAnchor parses a DS or DNSKEY record in presentation format, as in trust anchor files. For a DNSKEY record it
// computes the DS.
func ParseAnchor(text string) (Anchor, error) {
	rec, err := dns.NewRR(text)
	if err != nil {
		return Anchor{}, fmt.Errorf("anchor %q: %w", text, err)
	}
	ds, ok := rec.(*dns.DS)
	if key, is := rec.(*dns.DNSKEY); is {
		ds, ok = key.ToDS(dns.SHA256), true
	}
	if !ok || ds == nil {
		return Anchor{}, fmt.Errorf("anchor %q: neither a DS nor a DNSKEY record", text)
	}
	zone, err := dnsname.Parse(ds.Hdr.Name)
	if err != nil {
		return Anchor{}, fmt.Errorf("anchor %q: %w", text, err)
	}
	return Anchor{zone, ds.KeyTag, ds.Algorithm, ds.DigestType, ds.Digest}, nil
}

func (a Anchor) ds() *dns.DS {
	return &dns.DS{Hdr: dns.RR_Header{Name: a.Zone.String(), Rrtype: dns.TypeDS, Class: dns.ClassINET}, KeyTag: a.KeyTag,
		Algorithm: a.Algorithm, DigestType: a.DigestType, Digest: a.Digest}
}
