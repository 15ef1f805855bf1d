// Package mailtext parses the text records of mail: SPF, DMARC, DKIM, MTA-STS and TLS reports. It sends no queries.
//
// Start with ParseSPF and Count in spf.go; tags.go has the records that are lists of tags.
package mailtext

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Term is a mechanism or a modifier of an SPF record.
type Term struct {
	Text      string // as in the record
	Qualifier byte   // '+', '-', '~' or '?'; 0 for a modifier
	Name      string // "include", "redirect"; lower case
	Domain    string // the domain of the term; empty: that of the record
}

// SPF is an SPF record that is correct.
type SPF struct {
	Terms    []Term // the mechanisms, up to the first "all"
	Redirect string // empty: none, or not used because of an "all"
}

const spfVersion = "v=spf1"

// IsSPF reports whether a text is an SPF record (RFC 7208 §4.5).
func IsSPF(text string) bool {
	version, _, _ := strings.Cut(text, " ")
	return strings.EqualFold(version, spfVersion)
}

// NearSPF reports whether a text is meant as an SPF record, but is not one: for example, it has a space before the
// version, or a semicolon after it.
func NearSPF(text string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimLeft(text, " \t\"'")), spfVersion)
	return ok && !IsSPF(text) && (rest == "" || !strings.ContainsAny(rest[:1], "0123456789"))
}

// ParseSPF parses an SPF record (RFC 7208 §12).
func ParseSPF(text string) (out SPF, err error) {
	redirect, all, seen := "", false, map[string]bool{}
	for _, word := range strings.Split(text, " ")[1:] {
		if word == "" {
			continue
		}
		t, err := parseTerm(word)
		if err != nil {
			return SPF{}, err
		}
		switch {
		case (t.Name == "redirect" || t.Name == "exp") && seen[t.Name]:
			return SPF{}, fmt.Errorf("it has %q twice", t.Name+"=")
		case t.Name == "redirect":
			redirect = t.Domain
		case t.Qualifier != 0 && !all:
			out.Terms = append(out.Terms, t)
			all = t.Name == "all"
		}
		seen[t.Name] = true
	}
	if !all {
		out.Redirect = redirect
	}
	return out, nil
}

var modifier = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._-]*)=(.*)$`)

func parseTerm(word string) (t Term, err error) {
	if strings.ContainsFunc(word, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return t, fmt.Errorf("%q has a character that is not allowed", word)
	}
	if m := modifier.FindStringSubmatch(word); m != nil {
		t = Term{Text: word, Name: strings.ToLower(m[1]), Domain: m[2]}
		if t.Name == "redirect" || t.Name == "exp" {
			err = checkDomain(word, t.Domain)
		}
		return t, cmp.Or(err, checkMacros(word, t.Domain))
	}
	t = Term{Text: word, Qualifier: '+'}
	rest := word
	if strings.ContainsAny(word[:1], "+-~?") {
		t.Qualifier, rest = word[0], word[1:]
	}
	end := strings.IndexAny(rest, ":/")
	if end < 0 {
		end = len(rest)
	}
	t.Name = strings.ToLower(rest[:end])
	t.Domain, err = parseArgument(word, t.Name, rest[end:])
	return t, err
}

// prefixes matches the prefix lengths at the end of "a" and "mx": "/24", "//64" or "/24//64".
var prefixes = regexp.MustCompile(`^(.*?)(?:/(\d{1,3}))?(?://(\d{1,3}))?$`)

// parseArgument checks what follows the name of a mechanism, and returns its domain.
func parseArgument(word, name, rest string) (domain string, err error) {
	value, has := strings.CutPrefix(rest, ":")
	switch name {
	case "all":
		if rest != "" {
			return "", fmt.Errorf("%q must be \"all\" alone", word)
		}
		return "", nil
	case "ip4", "ip6":
		return "", checkNetwork(word, name, value)
	case "include", "exists":
		return value, checkDomain(word, value)
	case "ptr":
		if rest == "" {
			return "", nil
		}
		return value, checkDomain(word, value)
	case "a", "mx":
		m := prefixes.FindStringSubmatch(value)
		if !has {
			m = prefixes.FindStringSubmatch(rest)
		}
		if m == nil || !has && m[1] != "" || !length(m[2], 32) || !length(m[3], 128) {
			return "", fmt.Errorf("%q has a prefix length that is not valid", word)
		}
		if !has {
			return "", nil
		}
		return m[1], checkDomain(word, m[1])
	}
	return "", fmt.Errorf("%q is not a mechanism of SPF", word)
}

// length reports whether a prefix length is empty or valid.
func length(text string, most int) bool {
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && n <= most && (text == "0" || text[0] != '0')
}

func checkNetwork(word, name, value string) error {
	address, prefix, has := strings.Cut(value, "/")
	a, err := netip.ParseAddr(address)
	if err != nil || a.Zone() != "" || a.Is4() != (name == "ip4") {
		return fmt.Errorf("%q has no valid address", word)
	}
	if has && (prefix == "" || !length(prefix, a.BitLen())) {
		return fmt.Errorf("%q has a prefix length that is not valid", word)
	}
	return nil
}

// macro matches a macro (RFC 7208 §7.1).
var macro = regexp.MustCompile(`%\{[slodiphcrtvSLODIPHCRTV]\d*r?[-.+,/_=]*\}|%%|%_|%-`)

func checkMacros(word, value string) error {
	if strings.Contains(macro.ReplaceAllString(value, ""), "%") {
		return fmt.Errorf("%q has a macro that is not valid", word)
	}
	return nil
}

// lastLabel matches the last label of a domain: it has a letter, so an address is not a domain.
var lastLabel = regexp.MustCompile(`^(?:[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*|[A-Za-z0-9]+-[A-Za-z0-9-]*[A-Za-z0-9])$`)

// checkDomain checks a domain, which may contain macros and must end with a label or a macro.
func checkDomain(word, domain string) error {
	if err := checkMacros(word, domain); err != nil {
		return err
	}
	if at := macro.FindAllStringIndex(domain, -1); len(at) > 0 && at[len(at)-1][1] == len(domain) {
		return nil
	}
	name := strings.TrimSuffix(domain, ".")
	dot := strings.LastIndexByte(name, '.')
	if _, err := netip.ParseAddr(name); err == nil {
		return fmt.Errorf("%q has an address instead of a domain", word)
	}
	if dot < 0 || !lastLabel.MatchString(name[dot+1:]) || strings.Contains(name, "..") || dot == 0 {
		return fmt.Errorf("%q has no valid domain", word)
	}
	return nil
}

// HasMacro reports whether a domain depends on the sender.
func HasMacro(domain string) bool { return strings.Contains(domain, "%") }

// queries reports whether a term makes the receiver send a DNS query that counts (RFC 7208 §4.6.4).
func (t Term) queries() bool {
	return slices.Contains([]string{"include", "a", "mx", "ptr", "exists"}, t.Name)
}

// OpenTo returns the first term that allows every sender, or "".
func (s SPF) OpenTo() string {
	for _, t := range s.Terms {
		_, bits, _ := strings.Cut(t.Text, "/")
		if t.Qualifier == '+' && (t.Name == "all" || (t.Name == "ip4" || t.Name == "ip6") && bits == "0") {
			return t.Text
		}
	}
	return ""
}

// MaxLookups and MaxVoid are the limits of RFC 7208 §4.6.4: terms that need a query, and queries without an answer.
const (
	MaxLookups = 10
	MaxVoid    = 2
)

// ErrUnknown reports that the texts of a domain are not known.
var ErrUnknown = errors.New("not known")

// Total is the result of Count.
type Total struct {
	Lookups int      // terms that need a query; counting stops above MaxLookups
	Terms   []Term   // the first MaxLookups of them, with the domain of their record if they have none
	Broken  []string // what is wrong with included records, one sentence each without its dot
	Unknown []string // domains whose records are not known: Lookups may be higher
}

// Count counts the terms of an SPF record and of the records that it includes which need a query. texts returns the
// TXT records of a domain, or ErrUnknown. Count calls it only until the limit is exceeded, and once for each domain.
func Count(domain string, record SPF, texts func(domain string) ([]string, error)) (out Total) {
	type source struct {
		domain string
		record SPF
	}
	known := map[string]SPF{}
	queue := []source{{domain, record}}
	for len(queue) > 0 && out.Lookups <= MaxLookups {
		s := queue[0]
		queue = queue[1:]
		next := out.add(s.domain, s.record)
		for _, d := range next {
			if out.Lookups > MaxLookups {
				return out
			}
			key := strings.ToLower(strings.TrimSuffix(d, "."))
			included, ok := known[key]
			if !ok {
				included, ok = out.load(d, texts)
			}
			if known[key] = included; ok {
				queue = append(queue, source{d, included})
			}
		}
	}
	return out
}

// add counts the terms of one record, and returns the domains whose records it includes.
func (t *Total) add(domain string, record SPF) (next []string) {
	terms := record.Terms
	if record.Redirect != "" {
		terms = append(slices.Clone(terms), Term{Name: "redirect", Domain: record.Redirect})
	}
	for _, x := range terms {
		if !x.queries() && x.Name != "redirect" {
			continue
		}
		if t.Lookups++; t.Lookups > MaxLookups {
			continue // the result is known; a long record must not fill the lists
		}
		x.Domain = cmp.Or(x.Domain, domain)
		t.Terms = append(t.Terms, x)
		switch {
		case x.Name != "include" && x.Name != "redirect":
		case HasMacro(x.Domain):
			t.Unknown = append(t.Unknown, x.Domain)
		default:
			next = append(next, x.Domain)
		}
	}
	return next
}

// load returns the SPF record of a domain that another record includes.
func (t *Total) load(domain string, texts func(string) ([]string, error)) (SPF, bool) {
	all, err := texts(domain)
	if err != nil {
		t.Unknown = append(t.Unknown, domain)
		return SPF{}, false
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !IsSPF(s) })
	if len(all) != 1 {
		t.Broken = append(t.Broken, fmt.Sprintf("%s, which it includes, has %s", domain,
			map[bool]string{true: "no SPF record", false: "several SPF records"}[len(all) == 0]))
		return SPF{}, false
	}
	record, err := ParseSPF(all[0])
	if err != nil {
		t.Broken = append(t.Broken, fmt.Sprintf("the SPF record of %s, which it includes, is not valid: %s", domain, err))
		return SPF{}, false
	}
	return record, true
}
