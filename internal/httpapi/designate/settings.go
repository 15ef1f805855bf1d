package designate

import (
	"os"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Settings of the API.
type Settings struct {
	// BaseURL is how clients reach the server, without a final slash; default: the scheme and host of each request.
	BaseURL string

	Nameservers []Nameserver // of the pool; they become the NS set of every new zone
	DefaultTTL  uint32       // of new zones
	MinTTL      uint32       // smallest TTL that is accepted
	MaxImport   int64        // bytes of an imported zone file

	// Forwards says that the server resolves other names for its clients: a new zone takes a name from them.
	Forwards bool

	Special specialaddr.Table // classifies the masters that tenants name

	// Spool is the folder where zone files wait to be imported. It is open, because a server that has dropped root may
	// not be able to open it.
	Spool *os.Root
}

// Nameserver is a host that serves the pool's zones. The one with the lowest priority is the primary of their SOA.
type Nameserver struct {
	Hostname dnsname.Name
	Priority int
}

// Defaults of the Settings. The name server is true (RFC 6761 §6.3) for a server that was just tried out, and plainly
// not for anything else. An import of the default size has three million records.
const (
	DefaultNameserver = "ns1.localhost."
	DefaultTTL        = 3600
	DefaultMaxImport  = 128 << 20
)

// poolID is the id of the one pool: that of Designate's default pool, which clients and scripts have learnt by heart.
var poolID = uuid.MustParse("794ccc2c-d751-44fe-b57f-8894c9f5c842")
