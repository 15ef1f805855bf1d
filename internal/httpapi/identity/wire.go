package identity

import (
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// The only domain. Every Keystone gives its first domain this id and name.
const (
	domainID   = "default"
	domainName = "Default"
)

// region is the region of all endpoints in the catalog. It is the default of most OpenStack installations.
const region = "RegionOne"

// timeLayout is the layout of times in Keystone. Unlike Designate's it has the letter Z.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// The types below are documents of Keystone, with its names. Clients require members that have no meaning here, such as
// parent_id and tags, so these have the values of a project in the default domain.
type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

type mediaType struct {
	Base string `json:"base"`
	Type string `json:"type"`
}

type version struct {
	ID         string      `json:"id"`
	Status     string      `json:"status"`
	Updated    string      `json:"updated"`
	Links      []link      `json:"links"`
	MediaTypes []mediaType `json:"media-types"`
}

// Version returns the entry of the API in version documents. It announces v3.14: clients of newer versions use features
// that this server does not have.
func Version(base string) any {
	return version{ID: "v3.14", Status: "stable", Updated: "2020-04-07T00:00:00Z", Links: []link{{"self", base + "/v3/"}},
		MediaTypes: []mediaType{{"application/json", "application/vnd.openstack.identity-v3+json"}}}
}

type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type inDomain struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain named  `json:"domain"`
}

type userDoc struct {
	inDomain
	PasswordExpiresAt *string `json:"password_expires_at"`
}

type endpoint struct {
	ID        string `json:"id"`
	Interface string `json:"interface"`
	Region    string `json:"region"`
	RegionID  string `json:"region_id"`
	URL       string `json:"url"`
}

type service struct {
	ID        string     `json:"id"`
	Type      string     `json:"type"`
	Name      string     `json:"name"`
	Endpoints []endpoint `json:"endpoints"`
}

type token struct {
	Methods   []string  `json:"methods"`
	User      userDoc   `json:"user"`
	AuditIDs  []string  `json:"audit_ids"`
	ExpiresAt string    `json:"expires_at"`
	IssuedAt  string    `json:"issued_at"`
	Project   *inDomain `json:"project,omitempty"` // nil in the system scope
	System    *system   `json:"system,omitempty"`
	IsDomain  bool      `json:"is_domain"`
	Roles     []named   `json:"roles"`
	Catalog   []service `json:"catalog,omitempty"`
}

// system is the system scope.
type system struct {
	All bool `json:"all"`
}

type listLinks struct {
	Self     string  `json:"self"`
	Previous *string `json:"previous"`
	Next     *string `json:"next"`
}

type catalogDoc struct {
	Catalog []service `json:"catalog"`
	Links   listLinks `json:"links"`
}

type projectDoc struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	DomainID    string            `json:"domain_id"`
	ParentID    string            `json:"parent_id"`
	Enabled     bool              `json:"enabled"`
	IsDomain    bool              `json:"is_domain"`
	Tags        []string          `json:"tags"`
	Links       map[string]string `json:"links"`
}

type projectsDoc struct {
	Projects []projectDoc `json:"projects"`
	Links    listLinks    `json:"links"`
}

func (a API) projectDoc(r *http.Request, p access.Project) projectDoc {
	return projectDoc{ID: p.ID, Name: p.Name, Description: p.Description, DomainID: domainID, ParentID: domainID,
		Enabled: true, Tags: []string{},
		Links: map[string]string{"self": httpapi.BaseURL(r, a.PublicURL) + "/v3/projects/" + p.ID}}
}

// tokenDoc returns the document of a session or token. It omits the catalog for ?nocatalog, as Keystone does.
func (a API) tokenDoc(r *http.Request, p access.Principal) map[string]token {
	domain := named{domainID, domainName}
	expires := p.Expires
	if expires.IsZero() {
		expires = time.Now().Add(time.Hour) // clients require a time, although the token does not expire
	}
	t := token{Methods: p.Methods, User: userDoc{inDomain: inDomain{p.ID, p.Name, domain}}, AuditIDs: []string{p.Session},
		ExpiresAt: expires.UTC().Format(timeLayout), IssuedAt: p.Issued.UTC().Format(timeLayout)}
	if p.System {
		t.System = &system{All: true}
	} else {
		t.Project = &inDomain{p.Project.ID, p.Project.Name, domain}
	}
	if p.Session == "" {
		t.Methods, t.AuditIDs = []string{methodToken}, []string{p.ID}
	}
	for _, role := range access.Roles(p.Role) {
		t.Roles = append(t.Roles, named{role, role})
	}
	if !r.URL.Query().Has("nocatalog") {
		t.Catalog = a.catalog(r)
	}
	return map[string]token{"token": t}
}

// catalog returns the service catalog: all services are on this server. The URL of the DNS service has no version,
// because clients find the versions with a GET there.
func (a API) catalog(r *http.Request) []service {
	base := httpapi.BaseURL(r, a.PublicURL)
	at := func(id, url string) (out []endpoint) {
		for _, i := range []string{"public", "internal", "admin"} {
			out = append(out, endpoint{id + "-" + i, i, region, region, url})
		}
		return out
	}
	return []service{
		{"dns", "dns", "nameplane", at("dns", base+httpapi.DNSPath+"/")},
		{"identity", "identity", "nameplane", at("identity", base+"/v3/")},
	}
}
