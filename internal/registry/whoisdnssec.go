package registry

import (
	"strings"
)

// algorithms maps the names of DNSSEC algorithms to numbers, without hyphens and underscores. Registries write
// either.
var algorithms = map[string]uint8{
	"RSASHA1": 5, "NSEC3RSASHA1": 7, "RSASHA1NSEC3SHA1": 7, "RSASHA256": 8, "RSASHA512": 10,
	"ECDSAP256SHA256": 13, "ECDSASHA256": 13, "ECDSAP384SHA384": 14, "ECDSASHA384": 14, "ED25519": 15, "ED448": 16,
}

// algorithm parses the number or the name of an algorithm.
func algorithm(word string) (uint8, bool) {
	if n, ok := number(word, 8); ok {
		return uint8(n), true
	}
	a, ok := algorithms[strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToUpper(word))]
	return a, ok
}

// digestTypes maps the length of a digest to its type, for replies without a type: SHA-1, SHA-256, SHA-384.
var digestTypes = map[int]uint8{40: 1, 64: 2, 96: 4}

// setDS parses the formats in which registries write a DS record or the key for it:
//
//	370 13 2 BE74359954660069…          tag, algorithm, type and digest
//	12345 ECDSA-SHA-256 3F8C01…         .br: no type
//	257 3 8 AwEAAc…                     .de: a key
//	flags:KSK protocol:3 algorithm:RSA_SHA256 pubKey:AwEAAc…   .eu: a key
func (r *whoisReply) setDS(v string) {
	words := strings.Fields(strings.NewReplacer("(", " ", ")", " ", "flags:", " ", "protocol:", " ", "algorithm:", " ",
		"pubKey:", " ").Replace(v))
	if len(words) < 3 || len(r.DNSSEC.DS)+len(r.DNSSEC.Keys) >= maxList {
		return
	}
	words[0] = strings.NewReplacer("KSK", "257", "ZSK", "256").Replace(words[0])
	head, headOK := number(words[0], 16)
	second, secondOK := algorithm(words[1])
	third, thirdOK := algorithm(words[2])
	short, long := hexDigest(strings.Join(words[2:], "")), hexDigest(strings.Join(words[3:], ""))
	switch {
	case !headOK || !secondOK:
		return
	case thirdOK && digestTypes[len(long)] != 0:
		r.DNSSEC.DS = append(r.DNSSEC.DS, DS{uint16(head), second, third, long})
	case digestTypes[len(short)] != 0:
		r.DNSSEC.DS = append(r.DNSSEC.DS, DS{uint16(head), second, digestTypes[len(short)], short})
	case thirdOK && second == 3 && len(words) > 3:
		r.DNSSEC.Keys = append(r.DNSSEC.Keys, Key{uint16(head), 3, third, clean(strings.Join(words[3:], ""))})
	default:
		return
	}
	r.DNSSEC.Known, r.DNSSEC.Signed = true, true
}

// numberedKey matches a part of a DS record of .fr: key1-tag, key1-algo, key1-dgst-t, key1-dgst.
var numberedKey = lazy(`^key(\d+)-(tag|algo|dgst-t|dgst)$`)

// keyParts are the parts of a DS record seen so far.
type keyParts struct {
	number                     string
	tag, algorithm, digestType uint64
}

// addKeyPart collects the parts of a DS record; the digest is the last. The type is often wrong (the number of the
// algorithm), so the length of the digest determines it.
func (r *whoisReply) addKeyPart(key, part, value string) {
	if r.parts.number != key {
		r.parts = keyParts{number: key}
	}
	n, _ := number(value, 16)
	switch part {
	case "tag":
		r.parts.tag = n
	case "algo":
		r.parts.algorithm = n
	case "dgst-t":
		r.parts.digestType = n
	case "dgst":
		digest := hexDigest(value)
		if t := digestTypes[len(digest)]; t != 0 && r.parts.algorithm < 256 && len(r.DNSSEC.DS) < maxList {
			r.DNSSEC.DS = append(r.DNSSEC.DS, DS{uint16(r.parts.tag), uint8(r.parts.algorithm), t, digest})
			r.DNSSEC.Known, r.DNSSEC.Signed = true, true
		}
	}
}
