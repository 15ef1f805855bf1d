package httpapi

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/access"
)

// Area is a set of paths, with the roles that may use them. A caller without such a role gets 403 before an API sees
// the request. So an API for projects need not know about applications, and an API for applications not about projects.
type Area struct {
	Prefix string      // one path, or all paths below it when it ends with a slash
	Roles  []string    // the roles that are admitted; an admin always is
	Error  ErrorWriter // the form of errors in this area
}

// ErrorWriter writes an error in the form that the clients of an area read.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, status int, message string)

// projects is the area of every path that is in no other area.
var projects = Area{Prefix: "/", Roles: []string{access.RoleReader}, Error: Error}

// ManagementAreas returns the areas of the listener that has all management APIs: projects, platforms, metrics, and the
// path on which any token may read its own data. Metrics describe the data and the clients of all projects, so no role
// of a project may read them.
func ManagementAreas() []Area {
	any := []string{access.RoleReader, access.RolePlatform, access.RoleApp, access.RoleMetrics}
	areas := []Area{{Prefix: loginPath, Roles: any, Error: Error},
		{Prefix: "/metrics", Roles: []string{access.RoleMetrics}, Error: Error},
		{Prefix: PowerDNSPath, Roles: projects.Roles, Error: PowerDNSError},
		{Prefix: PowerDNSPath + "/", Roles: projects.Roles, Error: PowerDNSError}}
	for _, p := range PlatformPaths {
		areas = append(areas, Area{Prefix: p, Roles: []string{access.RolePlatform}, Error: Problem})
	}
	return areas
}

// PlatformPaths are the paths of Mm5 and of the management of the DNS server.
var PlatformPaths = []string{"/mep/config", "/mep/config/", "/mepcfg/", "/mep/mec_app_support/v1/applications/",
	ServerManagementPath}

// ServerManagementPath is the path below which a MEC platform manages the records of the DNS server.
const ServerManagementPath = "/mep/dns_server_mgmt/v1/"

// PowerDNSPath is the path of the API that has the form of PowerDNS.
const PowerDNSPath = "/api"

// PlatformAreas returns the areas of a listener for platforms only.
func PlatformAreas() []Area {
	return []Area{{Prefix: "/", Roles: []string{access.RolePlatform}, Error: Problem}}
}

// AppAreas returns the areas of a listener for applications only.
func AppAreas() []Area { return []Area{{Prefix: "/", Roles: []string{access.RoleApp}, Error: Problem}} }

// areaOf returns the area with the longest prefix of a path. A path that is not clean, such as one with "..", is only
// in the area of all paths ("/"): it is not known here where the mux will redirect it.
func (f *frame) areaOf(p string) Area {
	if clean := path.Clean(p); clean != p && clean+"/" != p {
		p = "/"
	}
	found := projects
	for _, a := range f.Areas {
		in := p == a.Prefix || strings.HasSuffix(a.Prefix, "/") && strings.HasPrefix(p, a.Prefix)
		if in && len(a.Prefix) >= len(found.Prefix) {
			found = a
		}
	}
	return found
}

// admits reports whether a caller has a role that the area admits.
func (a Area) admits(c Caller) bool {
	return c.IsAdmin() || slices.ContainsFunc(c.Roles, func(role string) bool { return slices.Contains(a.Roles, role) })
}
