package service

import (
	"fmt"
	"html"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Slip is a mistake that people make when they copy a record into the form of a DNS host.
type Slip string

// The slips. Each is a phrase that completes the sentence "The record is wrong: ...".
const (
	DoubledSuffix Slip = "the name of the zone was entered with the host, and the form added it again"
	TypedAt       Slip = "the sign @ was stored as a label; this form wants an empty host or the name of the zone"
	OtherZone     Slip = "the same record is in another zone, which is a sign that it was entered there by mistake"
	OtherOwner    Slip = "it is at another name"
	Quotes        Slip = "quotation marks were copied with the value"
	Spaces        Slip = "a space or an invisible character was copied with the value"
	Dash          Slip = "a hyphen became a typographic dash, as in a word processor"
	URL           Slip = "a URL was entered where a name belongs"
	NoFinalDot    Slip = "the form added the name of the zone to the value; enter the value with a final dot"
	WholeLine     Slip = "the whole line was pasted into the value, with the name or the type"
	Entity        Slip = "characters were escaped, as in a web page or a zone file"
	LetterCase    Slip = "upper and lower case changed"
	Underscore    Slip = "an underscore is missing or became a hyphen"
	Cut           Slip = "the end of the value is missing"
	Joined        Slip = "other text was added to the value"
	Split         Slip = "the value is spread over several records; it must be one record with several strings"
	MappedIPv4    Slip = "an IPv4 address was entered in a record for IPv6"
	WrongType     Slip = "it has another type"
	OldBeside     Slip = "an old value is beside the new one"
	Typo          Slip = "one or two letters differ"
)

// Live is a record set that the servers of the zone have.
type Live struct {
	Owner dnsname.Name `json:"owner"`
	Type  rr.Type      `json:"type"`
	Data  []string     `json:"data"`
}

// Diagnosis is a slip, and the record that shows it.
type Diagnosis struct {
	Slip Slip   `json:"slip"`
	At   Live   `json:"at"`
	Data string `json:"data"` // the wrong value, in presentation form
}

// Words returns the diagnosis as a sentence.
func (d Diagnosis) Words() string {
	return fmt.Sprintf("There is %s %s %s: %s.", strings.TrimSuffix(d.At.Owner.String(), "."), d.At.Type, d.Data, d.Slip)
}

// Suspects returns the names at which a record may have been entered by mistake. The servers of the zone are asked for
// them if the record is missing.
func Suspects(want Record, zone dnsname.Name) (out []dnsname.Name) {
	add := func(text string) {
		if n, err := dnsname.Parse(text); err == nil && n != want.Owner && n.IsIn(zone) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	owner, origin := want.Owner.String(), zone.String()
	add(owner + origin) // the zone twice
	if want.Owner == zone {
		add("@." + origin)
	} else {
		add(HostField(want.Owner, zone) + ".@." + origin)
	}
	if rest, ok := strings.CutPrefix(owner, "_"); ok {
		add(rest)
		add("-" + rest)
	}
	if want.Type == rr.TypeTXT {
		add(origin)
		add(want.Owner.Parent().String())
	}
	return out
}

// OtherZones returns the names that the record would have in the zones that the owner of a domain often has beside it:
// the same name below other top-level domains. Only the servers of the zone itself are asked for them.
func OtherZones(owner, zone dnsname.Name) (out []dnsname.Name) {
	for _, tld := range []string{"com.", "net.", "org."} {
		sibling := zone.Label() + "." + tld
		text := sibling
		if owner != zone {
			text = HostField(owner, zone) + "." + sibling
		}
		n, err := dnsname.Parse(text)
		if err == nil && sibling != zone.String() && !n.IsIn(zone) && owner.IsIn(zone) && !zone.IsRoot() {
			out = append(out, n)
		}
	}
	return out
}

// SameOwner reports whether the diagnosed record is at the name of the wanted one.
func (d Diagnosis) SameOwner(want Record) bool { return d.At.Owner == want.Owner }

// Diagnose compares a record set that a zone must have with those that its servers have. It returns false if the record
// is right, or if no slip explains the difference: then nothing is claimed.
func Diagnose(want Record, zone dnsname.Name, live []Live) (Diagnosis, bool) {
	at := func(owner dnsname.Name, t rr.Type) (Live, bool) {
		i := slices.IndexFunc(live, func(l Live) bool { return l.Owner == owner && l.Type == t })
		if i < 0 {
			return Live{}, false
		}
		return live[i], true
	}
	if here, ok := at(want.Owner, want.Type); ok {
		return diagnoseSet(want, zone, here)
	}
	for _, l := range live {
		if l.Owner == want.Owner {
			if d, ok := diagnoseType(want, l); ok {
				return d, true
			}
		}
	}
	for _, l := range live {
		if l.Owner != want.Owner && l.Type == want.Type && covers(l, want) {
			return Diagnosis{Slip: ownerSlip(want.Owner, l.Owner, zone), At: l, Data: l.Data[0]}, true
		}
	}
	return Diagnosis{}, false
}

// covers reports whether a set has all wanted values.
func covers(l Live, want Record) bool {
	return !slices.ContainsFunc(want.Data, func(w string) bool { return !has(l, want.Type, w) })
}

func has(l Live, t rr.Type, data string) bool {
	return slices.ContainsFunc(l.Data, func(d string) bool { return SameValue(t, d, data) })
}

// ownerSlip names the slip that moved a record from one owner to another.
func ownerSlip(want, got, zone dnsname.Name) Slip {
	owner := got.String()
	switch {
	case owner == want.String()+zone.String():
		return DoubledSuffix
	case got.Label() == "@" || got.Parent().Label() == "@":
		return TypedAt
	case strings.HasPrefix(want.String(), "_") && strings.TrimLeft(owner, "-") == want.String()[1:]:
		return Underscore
	case !got.IsIn(zone):
		return OtherZone
	}
	return OtherOwner
}

// diagnoseSet compares the values of the wanted set. A set with all wanted values and others has an old value.
func diagnoseSet(want Record, zone dnsname.Name, here Live) (Diagnosis, bool) {
	var extra, lacking []string
	for _, d := range here.Data {
		if !slices.ContainsFunc(want.Data, func(w string) bool { return SameValue(want.Type, w, d) }) {
			extra = append(extra, d)
		}
	}
	for _, w := range want.Data {
		if !has(here, want.Type, w) {
			lacking = append(lacking, w)
		}
	}
	switch {
	case len(lacking) == 0 && len(extra) == 0:
		return Diagnosis{}, false
	case len(lacking) == 0 && want.Type == rr.TypeTXT:
		return Diagnosis{}, false // TXT records of other services are beside it on purpose
	case len(lacking) == 0:
		return Diagnosis{Slip: OldBeside, At: here, Data: extra[0]}, true
	case want.Type == rr.TypeTXT && split(extra, Text(rr.TypeTXT, lacking[0])):
		return Diagnosis{Slip: Split, At: here, Data: strings.Join(extra, " and ")}, true
	}
	for _, w := range lacking {
		for _, d := range extra {
			if s, ok := valueSlip(Text(want.Type, w), Text(want.Type, d), want, zone); ok {
				return Diagnosis{Slip: s, At: here, Data: d}, true
			}
		}
	}
	return Diagnosis{}, false
}

// diagnoseType finds a wanted value in a set of another type at the right owner.
func diagnoseType(want Record, l Live) (Diagnosis, bool) {
	for _, w := range want.Data {
		for _, d := range l.Data {
			if want.Type == rr.TypeA && l.Type == rr.TypeAAAA && mapped(d, w) {
				return Diagnosis{Slip: MappedIPv4, At: l, Data: d}, true
			}
			if strings.EqualFold(tidy(Text(l.Type, d)), Text(want.Type, w)) {
				return Diagnosis{Slip: WrongType, At: l, Data: d}, true
			}
		}
	}
	return Diagnosis{}, false
}

// mapped reports whether an IPv6 address contains an IPv4 address: as ::ffff:192.0.2.1 or ::192.0.2.1.
func mapped(v6, v4 string) bool {
	a, err1 := netip.ParseAddr(v6)
	b, err2 := netip.ParseAddr(v4)
	if err1 != nil || err2 != nil || !a.Is6() || !b.Is4() {
		return false
	}
	long, short := a.As16(), b.As4()
	return a.Unmap() == b || slices.Equal(long[12:], short[:]) && !slices.ContainsFunc(long[:12], func(b byte) bool {
		return b != 0
	})
}

// valueSlip names the slip that turned one text into another. The more specific slips come first.
func valueSlip(want, got string, r Record, zone dnsname.Name) (Slip, bool) {
	if r.Type == rr.TypeA || r.Type == rr.TypeAAAA {
		return "", false // servers accept only addresses, and two similar ones are not a sign of a mistake
	}
	name := r.Type == rr.TypeCNAME || r.Type == rr.TypeALIAS
	equal := func(s string) bool { return s == want }
	origin := strings.TrimSuffix(zone.String(), ".")
	trimmed := strings.TrimFunc(got, invisible)
	switch {
	case equal(trimmed), equal(strings.Map(dropInvisible, got)):
		return Spaces, true
	case equal(unquote(trimmed)):
		return Quotes, true
	case equal(dashes.Replace(got)):
		return Dash, true
	case name && equal(bare(trimmed)):
		return URL, true
	case name && equal(strings.TrimSuffix(got, "."+origin)):
		return NoFinalDot, true
	case equal(html.UnescapeString(got)), equal(strings.ReplaceAll(got, `\`, "")):
		return Entity, true
	case equal(lastWord(trimmed)):
		return WholeLine, true
	case strings.EqualFold(got, want):
		return LetterCase, true
	case strings.ReplaceAll(got, "-", "") == strings.ReplaceAll(strings.ReplaceAll(want, "_", ""), "-", "") &&
		strings.Contains(want, "_"):
		return Underscore, true
	case len(got) >= 8 && strings.HasPrefix(want, got):
		return Cut, true
	case len(want) >= 8 && strings.Contains(got, want):
		return Joined, true
	case len(want) >= 6 && Distance(want, got) <= 2:
		return Typo, true
	}
	return "", false
}

// SameValue reports whether two values in presentation form are the same for a person who typed them.
func SameValue(t rr.Type, a, b string) bool { return Text(t, a) == Text(t, b) }

// Text returns a value as a person typed it: a name in lower case, without the final dot and without escapes, and a
// text without the quotes of its strings.
func Text(t rr.Type, data string) string {
	switch t {
	case rr.TypeTXT:
		return unescaped(strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(data, `"`), `"`), `" "`, ""))
	case rr.TypeCNAME, rr.TypeALIAS:
		return strings.ToLower(strings.TrimSuffix(unescaped(data), "."))
	}
	return data
}

// unescaped replaces the escapes of the presentation form: \DDD and \X (RFC 1035 §5.1).
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if i+3 < len(s) && digits(s[i+1:i+4]) {
			n := int(s[i+1]-'0')*100 + int(s[i+2]-'0')*10 + int(s[i+3]-'0')
			b.WriteByte(byte(n))
			i += 3
			continue
		}
		i++
		b.WriteByte(s[i])
	}
	return b.String()
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// invisible reports whether a character cannot be seen at the end of a value.
func invisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) || r == '\ufeff'
}

func dropInvisible(r rune) rune {
	if invisible(r) {
		return -1
	}
	return r
}

// dashes replaces typographic dashes and the minus sign.
var dashes = strings.NewReplacer("‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "−", "-")

// unquote removes pairs of quotation marks of any form.
func unquote(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return strings.ContainsRune(`"'“”‘’„«»`+"`", r) })
}

// tidy removes what people copy with a value.
func tidy(s string) string { return bare(unquote(strings.TrimFunc(s, invisible))) }

// bare returns the host of a URL: without the scheme, the port and the path.
func bare(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	if host, port, ok := strings.Cut(s, ":"); ok && digits(port) {
		s = host
	}
	return strings.TrimSuffix(s, ".")
}

// lastWord returns the last word of a pasted line, such as "www IN CNAME edge.example.net." or "token=abc".
func lastWord(s string) string {
	if i := strings.LastIndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '=' }); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSuffix(unquote(s), ".")
}

// split reports whether the texts of some records, in any order, make up a text.
func split(parts []string, whole string) bool {
	if len(parts) < 2 || len(parts) > 4 {
		return false
	}
	return joins(words(parts), whole)
}

func words(parts []string) (out []string) {
	for _, p := range parts {
		out = append(out, Text(rr.TypeTXT, p))
	}
	return out
}

func joins(parts []string, whole string) bool {
	if len(parts) == 0 {
		return whole == ""
	}
	for i, p := range parts {
		if rest, ok := strings.CutPrefix(whole, p); ok && p != "" && joins(slices.Delete(slices.Clone(parts), i, i+1), rest) {
			return true
		}
	}
	return false
}

// Distance returns the number of letters to change, add or remove to turn one text into the other.
func Distance(a, b string) int {
	if max(len(a), len(b)) > 255 {
		return 255
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		last := row[0]
		row[0] = i + 1
		for j := range b {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
