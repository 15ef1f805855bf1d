package externaldns

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// endpoint is a record set in the form of external-dns.
type endpoint struct {
	DNSName          string            `json:"dnsName,omitempty"`
	Targets          []string          `json:"targets,omitempty"`
	RecordType       string            `json:"recordType,omitempty"`
	SetIdentifier    string            `json:"setIdentifier,omitempty"`
	RecordTTL        int64             `json:"recordTTL,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	ProviderSpecific properties        `json:"providerSpecific,omitempty"`
}

// property is a setting of an endpoint for one DNS provider.
type property struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// properties are the settings of an endpoint. Of those in a body, only isAlias is kept: the others have no meaning
// here, and an empty one has two bytes in the body and 32 in memory.
type properties []property

// UnmarshalJSON reads the properties one by one.
func (p *properties) UnmarshalJSON(b []byte) error {
	*p = nil
	return eachOf(b, func(next property) {
		if next == isAlias {
			*p = properties{isAlias}
		}
	})
}

// isAlias marks a CNAME that is an ALIAS record set in the zone. The annotation
// external-dns.alpha.kubernetes.io/alias sets it.
var isAlias = property{Name: "alias", Value: "true"}

// refusal says why an endpoint can never be served.
type refusal struct {
	reason string // value of the label of the metric
	detail string
}

func refuse(reason, format string, a ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, a...)}
}

// set returns the record set of an endpoint, without its zone. A TTL below minTTL becomes minTTL: external-dns would
// otherwise send it again in every loop.
func (e endpoint) set(minTTL uint32) (zone.RecordSet, *refusal) {
	var s zone.RecordSet
	if e.SetIdentifier != "" {
		return s, refuse("set_identifier", "the set identifier %.64q asks for several sets of one name and type",
			e.SetIdentifier)
	}
	name, err := parseName(e.DNSName)
	if err != nil {
		return s, refuse("name", "%v", err)
	}
	typ, err := rr.ParseType(e.RecordType)
	if err != nil || !typ.IsData() || typ == rr.TypeSOA || typ == rr.TypeALIAS {
		return s, refuse("type", "%.32q is not a type of records that external-dns can manage here", e.RecordType)
	}
	if typ == rr.TypeCNAME && slices.Contains(e.ProviderSpecific, isAlias) {
		typ = rr.TypeALIAS
	}
	s.Name, s.Type = name, typ
	if e.RecordTTL > 0 {
		s.TTL = new(uint32(min(max(e.RecordTTL, int64(minTTL)), rr.MaxTTL)))
	}
	for _, target := range e.Targets {
		data, err := parseTarget(typ, target)
		if err != nil {
			return s, refuse("data", "%v", err)
		}
		s.Data = append(s.Data, data)
	}
	s.Data = rr.Normal(typ, s.Data)
	switch {
	case len(s.Data) == 0:
		return s, refuse("data", "there are no targets")
	case len(s.Data) > 1 && (typ == rr.TypeCNAME || typ == rr.TypeALIAS):
		return s, refuse("data", "a CNAME has only one target")
	}
	return s, nil
}

// parseName parses the name of an endpoint, which may have letters outside ASCII and a final dot.
func parseName(s string) (dnsname.Name, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f }) {
		ascii, err := idna.Lookup.ToASCII(s)
		if err != nil {
			return dnsname.Name{}, err
		}
		s = ascii
	}
	return dnsname.Parse(s)
}

// hostText returns a name without its final dot, as external-dns writes it.
func hostText(n dnsname.Name) string { return strings.TrimSuffix(n.String(), ".") }

// endpointOf returns the endpoint of a record set. The endpoint of a set that was parsed from an endpoint has the same
// targets as the one that adjust returns, so external-dns finds no difference.
func endpointOf(s zone.RecordSet) endpoint {
	e := endpoint{DNSName: hostText(s.Name), RecordType: s.Type.String(), Targets: targets(s)}
	if s.TTL != nil {
		e.RecordTTL = int64(*s.TTL)
	}
	if s.Type == rr.TypeALIAS {
		e.RecordType, e.ProviderSpecific = rr.TypeCNAME.String(), properties{isAlias}
	}
	return e
}

// targets returns the records of a set as text.
func targets(s zone.RecordSet) []string {
	out := make([]string, 0, len(s.Data))
	for _, d := range s.Data {
		out = append(out, targetText(s.Type, d))
	}
	return out
}

// targetText returns one record as text. Host names have no final dot, as in all sources of external-dns. A TXT
// record is one quoted string, also when it has several: the registry of external-dns reads its labels from it.
func targetText(t rr.Type, data string) string {
	switch t {
	case rr.TypeTXT:
		return quote(joined(data))
	case rr.TypeCNAME, rr.TypeALIAS, rr.TypeNS, rr.TypePTR, rr.TypeDNAME, rr.TypeMX, rr.TypeSRV:
		text := rr.DataText(t, data)
		if host, ok := strings.CutSuffix(text, "."); ok && host != "" && !strings.HasSuffix(host, " ") {
			return host
		}
		return text
	}
	return rr.DataText(t, data)
}

// parseTarget parses one record.
func parseTarget(t rr.Type, text string) (string, error) {
	text = strings.TrimSpace(text)
	if t == rr.TypeTXT && text != "" && !strings.HasPrefix(text, `"`) {
		text = quote(text) // without quotes, the text is the content itself
	}
	return rr.ParseData(t, text)
}

// joined returns the content of a TXT record. Its strings have a length byte before them.
func joined(data string) string {
	var b strings.Builder
	for len(data) > 0 {
		n := min(int(data[0]), len(data)-1)
		b.WriteString(data[1 : 1+n])
		data = data[1+n:]
	}
	return b.String()
}

// quote returns content as a quoted string in presentation form (RFC 1035 §5.1).
func quote(content string) string {
	b := make([]byte, 0, len(content)+2)
	b = append(b, '"')
	for i := range len(content) {
		switch c := content[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = fmt.Appendf(b, `\%03d`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// sameRecords reports whether two sets of one type have the same records. TXT records with the same content are the
// same, however it is divided into strings: endpoints do not show that.
func sameRecords(a, b zone.RecordSet) bool { return slices.Equal(recordKeys(a), recordKeys(b)) }

func recordKeys(s zone.RecordSet) []string {
	out := make([]string, 0, len(s.Data))
	for _, d := range s.Data {
		if s.Type == rr.TypeTXT {
			d = joined(d)
		}
		out = append(out, rr.DataKey(s.Type, d))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isOwnership reports whether a set has the TXT record by which external-dns marks the names that it manages.
func isOwnership(s zone.RecordSet) bool {
	return s.Type == rr.TypeTXT && len(s.Data) == 1 && strings.HasPrefix(joined(s.Data[0]), "heritage=external-dns,")
}
