package mailtext

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tag is one name and value of a record such as "v=DMARC1; p=none".
type tag struct{ name, value string }

var tagName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// parseTags parses a list of tags (RFC 6376 §3.2). A tag that appears twice makes the whole list invalid, so it is an
// error here, and not a warning about one of the two.
func parseTags(text string) (out []tag, err error) {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		part = strings.Trim(part, " \t\r\n")
		// The grammar allows one semicolon at the end of the list.
		if part == "" && i == len(parts)-1 {
			break
		}
		name, value, ok := strings.Cut(part, "=")
		t := tag{strings.TrimRight(name, " \t"), strings.TrimLeft(value, " \t")}
		switch {
		case part == "":
			return nil, errors.New("it has two semicolons without a tag between them")
		case !ok || !tagName.MatchString(t.name):
			return nil, fmt.Errorf("%q is not a tag with a value", part)
		case slices.ContainsFunc(out, func(o tag) bool { return o.name == t.name }):
			return nil, fmt.Errorf("it has the tag %q twice", t.name)
		}
		out = append(out, t)
	}
	return out, nil
}

// find returns the value of a tag.
func find(tags []tag, name string) (string, bool) {
	i := slices.IndexFunc(tags, func(t tag) bool { return t.name == name })
	if i < 0 {
		return "", false
	}
	return tags[i].value, true
}

// Has reports whether a text begins with a version such as "v=DMARC1", so that receivers read it. The version must be
// the first tag, and its value is case-sensitive: receivers discard other TXT records (for DMARC: RFC 7489 §6.6.3).
func Has(text, version string) bool {
	name, value, _ := strings.Cut(version, "=")
	first, _, _ := strings.Cut(text, ";")
	n, v, ok := strings.Cut(first, "=")
	return ok && strings.TrimRight(n, " \t") == name && strings.Trim(v, " \t") == value
}

// Near reports whether a text is meant as a record with a version, but is not one: receivers ignore it. Quotes and
// spaces are removed first: forms of DNS hosts add quotes of their own, and people copy them from guides.
func Near(text, version string) bool {
	squeeze := strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace
	_, word, _ := strings.Cut(version, "=")
	return !Has(text, version) && strings.Contains(strings.ToLower(squeeze(text)), strings.ToLower(word))
}

// The versions of the records.
const (
	DMARC  = "v=DMARC1"
	STS    = "v=STSv1"
	TLSRPT = "v=TLSRPTv1"
)

// Check checks a record with one of the versions.
func Check(text, version string) error {
	tags, err := parseTags(text)
	if err != nil {
		return err
	}
	switch version {
	case DMARC:
		return checkDMARC(tags)
	case STS:
		id, ok := find(tags, "id")
		if !ok || !stsID.MatchString(id) {
			return fmt.Errorf("the tag \"id\" must have 1 to 32 letters and digits, not %q", id)
		}
	case TLSRPT:
		rua, ok := find(tags, "rua")
		if !ok {
			return errors.New("it has no tag \"rua\", so reports have no destination")
		}
		return checkURIs("rua", rua, "mailto", "https")
	}
	return nil
}

// stsID is the form of RFC 8461 §3.1. Senders fetch the policy again when the id changes, so a date is a usual value.
var stsID = regexp.MustCompile(`^[A-Za-z0-9]{1,32}$`)

// dmarcValues are the values of tags of DMARC (RFC 7489 §6.3).
var dmarcValues = map[string]*regexp.Regexp{
	"p":     regexp.MustCompile(`^(?i:none|quarantine|reject)$`),
	"sp":    regexp.MustCompile(`^(?i:none|quarantine|reject)$`),
	"adkim": regexp.MustCompile(`^[rsRS]$`),
	"aspf":  regexp.MustCompile(`^[rsRS]$`),
	"pct":   regexp.MustCompile(`^([0-9]{1,2}|100)$`),
	"fo":    regexp.MustCompile(`^[01dsDS](\s*:\s*[01dsDS])*$`),
	"ri":    regexp.MustCompile(`^[0-9]+$`),
}

// checkDMARC checks the values that a receiver acts on. Unknown tags are skipped, as RFC 7489 §6.3 demands of
// receivers: later versions of DMARC add tags, and such a record is not wrong.
func checkDMARC(tags []tag) error {
	if _, ok := find(tags, "p"); !ok {
		return errors.New("it has no tag \"p\", which is the policy")
	}
	for _, t := range tags {
		if values := dmarcValues[t.name]; values != nil && !values.MatchString(t.value) {
			return fmt.Errorf("%q is not a value of the tag %q", t.value, t.name)
		}
		if t.name == "rua" || t.name == "ruf" {
			if err := checkURIs(t.name, t.value, "mailto"); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkURIs checks a list of destinations of reports. A comma always separates two of them: RFC 7489 §6.4 demands that
// commas inside a URI are encoded.
func checkURIs(name, list string, schemes ...string) error {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		u, err := url.Parse(text)
		switch {
		case err != nil || !slices.Contains(schemes, strings.ToLower(u.Scheme)):
			return fmt.Errorf("%q in the tag %q is not a URI with %s", text, name, strings.Join(schemes, " or "))
		case strings.EqualFold(u.Scheme, "mailto") && !strings.Contains(u.Opaque, "@"):
			return fmt.Errorf("%q in the tag %q is not a mail address", text, name)
		}
	}
	return nil
}

// Key is a public key of DKIM.
type Key struct {
	Type    string // "rsa" or "ed25519"; other types have no Bits
	Bits    int
	Revoked bool
}

// ParseDKIM parses a key record (RFC 6376 §3.6.1). An empty "p" is no error: it is how an owner revokes a key.
func ParseDKIM(text string) (k Key, err error) {
	tags, err := parseTags(text)
	if err != nil {
		return k, err
	}
	if v, ok := find(tags, "v"); ok && (v != "DKIM1" || tags[0].name != "v") {
		return k, errors.New("the tag \"v\" must be the first one, and have the value DKIM1")
	}
	k.Type = "rsa"
	if t, ok := find(tags, "k"); ok {
		k.Type = strings.ToLower(t)
	}
	p, ok := find(tags, "p")
	// A key of 2048 bits is longer than one string of a TXT record. RFC 6376 allows white space between its pieces.
	p = strings.NewReplacer(" ", "", "\t", "").Replace(p)
	data, err := base64.StdEncoding.DecodeString(p)
	switch {
	case !ok:
		return k, errors.New("it has no tag \"p\", which is the public key")
	case p == "":
		k.Revoked = true
		return k, nil
	case err != nil:
		return k, errors.New("the public key is not valid base64; it may be cut off")
	}
	return k, k.read(data)
}

// read sets the length of the key.
func (k *Key) read(data []byte) error {
	switch k.Type {
	case "ed25519":
		if k.Bits = len(data) * 8; k.Bits != 256 {
			return fmt.Errorf("a key of the type ed25519 has 32 bytes, not %s", strconv.Itoa(len(data)))
		}
	case "rsa":
		var key *rsa.PublicKey
		if any, err := x509.ParsePKIXPublicKey(data); err == nil {
			key, _ = any.(*rsa.PublicKey)
		} else {
			key, _ = x509.ParsePKCS1PublicKey(data) // the text of RFC 6376 says this form, too
		}
		if key == nil {
			return errors.New("the public key is not an RSA key; it may be cut off")
		}
		k.Bits = key.N.BitLen()
	}
	return nil
}
