package httpapi

import (
	"net/http"
	"strings"
)

// DNSPath is the path of the DNS service in the catalog. It differs from the root, which is the path of the identity
// service for clients that do not write /v3: keystoneauth reads version documents at both, and takes version 2 of the
// DNS API for version 2 of the identity API when it finds them in one document.
const DNSPath = "/dns"

// WithDNSPath serves all paths below DNSPath as h serves them below the root. DNSPath itself has its own handler in h.
func WithDNSPath(h http.Handler) http.Handler {
	below := http.StripPrefix(DNSPath, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, DNSPath+"/"); ok && rest != "" {
			below.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
