package gather

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/rr"
)

// Fetch gets the page of a name from one address, over HTTP, and its first octets.
type Fetch func(ctx context.Context, name dnsname.Name, at netip.Addr) (status int, body string, err error)

// service is one at which people claim names below its own, and the words with which it says that nobody has.
type service struct {
	name     string
	suffixes []string
	words    []string
}

// services are written from memory of their pages, and change. Words that are gone make a claim look taken, never free.
var services = []service{
	{"GitHub Pages", []string{"github.io"}, []string{"There isn't a GitHub Pages site here"}},
	{"Heroku", []string{"herokuapp.com", "herokudns.com"}, []string{"No such app", "no-such-app"}},
	{"Amazon S3", []string{"amazonaws.com"}, []string{"NoSuchBucket"}},
	{"Azure", []string{"azurewebsites.net", "cloudapp.net"}, []string{"404 Web Site not found"}},
	{"Shopify", []string{"myshopify.com"}, []string{"this shop is currently unavailable"}},
	{"Fastly", []string{"fastly.net"}, []string{"Fastly error: unknown domain"}},
	{"Netlify", []string{"netlify.app", "netlify.com"}, []string{"Not Found - Request ID"}},
	{"Read the Docs", []string{"readthedocs.io"}, []string{"unknown to Read the Docs"}},
	{"Surge", []string{"surge.sh"}, []string{"project not found"}},
	{"Pantheon", []string{"pantheonsite.io"}, []string{"404 error unknown site"}},
	{"Bitbucket", []string{"bitbucket.io"}, []string{"Repository not found"}},
}

func serviceOf(n dnsname.Name) (service, bool) {
	i := slices.IndexFunc(services, func(s service) bool {
		return slices.ContainsFunc(s.suffixes, func(suffix string) bool { return n.IsIn(dnsname.MustParse(suffix)) })
	})
	if i < 0 {
		return service{}, false
	}
	return services[i], true
}

// claims asks services that aliases lead to whether anybody has the name. Nobody else is asked over HTTP.
func (r *run) claims() {
	if r.Fetch == nil {
		return
	}
	for _, l := range r.trace.Chain {
		s, ok := serviceOf(l.To)
		if !ok || slices.ContainsFunc(r.facts.Claims, func(c explain.Claim) bool { return c.Target == l.To }) {
			continue
		}
		r.facts.Claims = append(r.facts.Claims, r.claim(s, l.To))
	}
}

func (r *run) claim(s service, target dnsname.Name) explain.Claim {
	c := explain.Claim{Target: target, Service: s.name, Free: explain.Unknown}
	addr, ok := r.anAddress()
	if !ok {
		c.Detail = "it has no address"
		return c
	}
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	status, body, err := r.Fetch(ctx, r.facts.Name, addr)
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	c.Free, c.Detail = explain.No, fmt.Sprintf("status %d", status)
	if slices.ContainsFunc(s.words, func(w string) bool { return strings.Contains(body, w) }) {
		c.Free = explain.Yes
	}
	return c
}

// anAddress is one that the name leads to.
func (r *run) anAddress() (netip.Addr, bool) {
	for _, o := range r.facts.Outcomes {
		for _, s := range o.Sets {
			for _, d := range s.Data {
				if a, err := netip.ParseAddr(d); err == nil && (s.Type == rr.TypeA || s.Type == rr.TypeAAAA) {
					return a, true
				}
			}
		}
	}
	return netip.Addr{}, false
}

// maxPage is how much of a page is read: the words stand at its beginning.
const maxPage = 64 << 10

// OverHTTP is a Fetch by connections that dial opens. It follows nobody elsewhere.
func OverHTTP(dial Dial) Fetch {
	return func(ctx context.Context, name dnsname.Name, at netip.Addr) (int, string, error) {
		transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxPage}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+netip.AddrPortFrom(at, 80).String()+"/", nil)
		if err != nil {
			return 0, "", err
		}
		req.Host = strings.TrimSuffix(name.String(), ".")
		req.Header.Set("User-Agent", "nameplane")
		res, err := transport.RoundTrip(req)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(res.Body, maxPage))
		return res.StatusCode, string(body), err
	}
}
