package dnspeer

import (
	"context"

	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/zone"
)

// Pack sends a zone as the answer to a query.
func Pack(query []byte, n *zone.Nodes, send func([]byte) error) error {
	r := &request{Server: New(Config{}), ctx: context.Background(), head: replyHead(query),
		m: dnsserver.PeerMessage{Send: send}}
	return r.sendZone(n)
}
