package registry

// Parsed is a parsed reply.
type Parsed struct {
	Registration
	Name     string   `json:",omitempty"`
	Code     uint64   `json:",omitempty"`
	Related  []string `json:",omitempty"`
	Referral string   `json:",omitempty"`
	Verdict  string   `json:",omitempty"`
}

// ParseRDAP parses an RDAP reply.
func ParseRDAP(body []byte) (Parsed, error) {
	r, err := parseRDAP(body)
	return Parsed{Registration: r.Registration, Name: r.name, Code: r.code, Related: r.related}, err
}

// ParseWhois parses a WHOIS reply about a domain.
func ParseWhois(body []byte, domain string) Parsed {
	r := parseWhois(decodeText(body), domain)
	return Parsed{Registration: r.Registration, Name: r.name, Referral: r.referral, Verdict: string(r.verdict)}
}

var (
	ParseDate      = parseDate
	ParseBootstrap = parseBootstrap
	WhoisHost      = whoisHost
)
