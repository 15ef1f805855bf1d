package designate

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// checkAccept returns 406 when the client does not accept the media type of the route's replies (RFC 9110 §12.5.1).
// Version documents are sent in any case: clients read them before they know what the server has.
func (c *call) checkAccept() error {
	media := "application/json"
	if c.route.need&isZoneFile != 0 {
		media = "text/dns"
	}
	if c.route.need == needNothing || accepts(c.r.Header.Values("Accept"), media) {
		return nil
	}
	return &fault{status: http.StatusNotAcceptable, kind: "unsupported_accept", message: "Accept must be " + media}
}

// accepts reports whether the Accept headers allow a media type. The most specific range that matches decides. Headers
// without a valid range allow everything, as in Designate.
func accepts(headers []string, media string) bool {
	if len(headers) == 0 || len(headers) == 1 && (headers[0] == media || headers[0] == "*/*") {
		return true // what almost all clients send
	}
	major, _, _ := strings.Cut(media, "/")
	specific := map[string]int{media: 3, major + "/*": 2, "*/*": 1}
	valid, best, quality := false, 0, 0.0
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil || !strings.Contains(name, "/") {
			continue
		}
		valid = true
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		if rank := specific[name]; rank > best {
			best, quality = rank, q
		}
	}
	return !valid || quality > 0
}
