package config

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/transfer"
)

// Transfer configures which name servers may copy zones, and which are notified of changes.
type Transfer struct {
	Allow       []string    `yaml:"allow"`
	AllowKeys   []string    `yaml:"allow_keys"`
	Secondaries []Secondary `yaml:"secondaries"`
}

// Secondary is a server that is notified of changes.
type Secondary struct {
	Address string `yaml:"address"`
	Key     string `yaml:"key"`
}

// AddrPort returns Address, which Parse has checked.
func (s Secondary) AddrPort() netip.AddrPort {
	a, _ := transfer.ParseMaster(s.Address)
	return a
}

// KeyName returns Key, which Parse has checked. It returns the zero Name when there is no key.
func (s Secondary) KeyName() dnsname.Name {
	n, _ := dnsname.Parse(s.Key)
	return n
}

// Networks returns the networks that may transfer every zone: Allow, and secondaries without a key.
func (t Transfer) Networks() []netip.Prefix {
	out := parsed(t.Allow, parseNetwork)
	for _, s := range t.Secondaries {
		if s.Key == "" {
			a := s.AddrPort().Addr()
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

// Keys returns the keys that may transfer every zone: AllowKeys, and the keys of secondaries.
func (t Transfer) Keys() []dnsname.Name {
	keys := slices.Clone(t.AllowKeys)
	for _, s := range t.Secondaries {
		if s.Key != "" {
			keys = append(keys, s.Key)
		}
	}
	return parsed(keys, dnsname.Parse)
}

// transfer refuses networks that include the whole internet: a transfer discloses all names of a zone.
func (v *checker) transfer(t Transfer) {
	v.networks("transfer.allow", t.Allow)
	for i, s := range t.Allow {
		p, err := parseNetwork(s)
		v.need(err != nil || p.Bits() > 0, fmt.Sprintf("transfer.allow[%d]", i),
			"gives every zone to the whole internet: list networks, or use keys")
	}
	for i, k := range t.AllowKeys {
		_, err := dnsname.Parse(k)
		v.need(err == nil && k != "", fmt.Sprintf("transfer.allow_keys[%d]", i), "must be the name of a TSIG key")
	}
	for i, s := range t.Secondaries {
		_, err := transfer.ParseMaster(s.Address)
		v.need(err == nil, fmt.Sprintf("transfer.secondaries[%d].address", i),
			"must be an address, such as 192.0.2.2 or [2001:db8::2]:5353")
		_, err = dnsname.Parse(s.Key)
		v.need(err == nil || s.Key == "", fmt.Sprintf("transfer.secondaries[%d].key", i),
			"must be the name of a TSIG key")
	}
}
