package designate

import (
	"os"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Settings holds the settings of the API.
type Settings struct {
	// BaseURL is the URL under which clients reach the server, without a final slash. Default: the scheme and host of each
	// request.
	BaseURL string

	Nameservers []Nameserver // the name servers of the default pool; they become the NS set of its new zones
	DefaultTTL  uint32       // the TTL of new zones
	MinTTL      uint32       // the smallest TTL that is accepted
	MaxImport   int64        // the largest zone file for an import, in bytes

	// Forwards is set when the server resolves other names for its clients: a new zone then hides a name from them.
	Forwards bool

	Special specialaddr.Table // classifies the masters that tenants name

	// Spool is the directory for uploaded zone files. The caller opens it, because a server that has dropped root
	// privileges may not be able to.
	Spool *os.Root
}

// Nameserver is a host that serves the zones of the default pool. The one with the lowest priority is the MNAME of
// their SOA records.
type Nameserver struct {
	Hostname dnsname.Name
	Priority int
}

// Defaults of the Settings. The name of the default name server resolves to the server's own machine (RFC 6761 §6.3):
// right for a first try, and obviously wrong for anything else. A zone file of the default size has three million
// records.
const (
	DefaultNameserver = "ns1.localhost."
	DefaultTTL        = 3600
	DefaultMaxImport  = 128 << 20
)
