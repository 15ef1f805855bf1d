package registry

// Parsed is what a reply was read as.
type Parsed struct {
	Registration
	Name     string   `json:",omitempty"`
	Code     uint64   `json:",omitempty"`
	Related  []string `json:",omitempty"`
	Referral string   `json:",omitempty"`
	Verdict  string   `json:",omitempty"`
}

// ParseRDAP reads a reply of RDAP.
func ParseRDAP(body []byte) (Parsed, error) {
	r, err := parseRDAP(body)
	return Parsed{Registration: r.Registration, Name: r.name, Code: r.code, Related: r.related}, err
}

// ParseWhois reads a reply of WHOIS about a domain.
func ParseWhois(body []byte, domain string) Parsed {
	r := parseWhois(decodeText(body), domain)
	return Parsed{Registration: r.Registration, Name: r.name, Referral: r.referral, Verdict: string(r.verdict)}
}

var (
	ParseDate      = parseDate
	ParseBootstrap = parseBootstrap
	WhoisHost      = whoisHost
)
