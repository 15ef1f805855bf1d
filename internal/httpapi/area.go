package httpapi

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/access"
)

// Area is a part of the paths, with those who may enter it. Who has no role in it is answered with 403 before any door sees
// the request, so that a door for projects need not know of applications, nor the other way round.
type Area struct {
	Prefix string      // one path, or everything below when it ends with a slash
	Roles  []string    // who may enter; an admin always may
	Error  ErrorWriter // how the frame says no there
}

// ErrorWriter answers with an error in the form that the clients of an area read.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, status int, message string)

// projects is every path that is in no other area.
var projects = Area{Prefix: "/", Roles: []string{access.RoleReader}, Error: Error}

// ManagementAreas are the areas of the listener that has all of management: besides projects, the platform's doors, the
// metrics, and the one path where any token may ask about itself. Metrics tell how much all projects together hold and who
// asks for it, so no role of a project reads them.
func ManagementAreas() []Area {
	any := []string{access.RoleReader, access.RolePlatform, access.RoleApp, access.RoleMetrics}
	areas := []Area{{Prefix: loginPath, Roles: any, Error: Error},
		{Prefix: "/metrics", Roles: []string{access.RoleMetrics}, Error: Error}}
	for _, p := range PlatformPaths {
		areas = append(areas, Area{Prefix: p, Roles: []string{access.RolePlatform}, Error: Problem})
	}
	return areas
}

// PlatformPaths are where Mm5 and the management of the DNS server are.
var PlatformPaths = []string{"/mep/config", "/mep/config/", "/mepcfg/", "/mep/mec_app_support/v1/applications/", ServerManagementPath}

// ServerManagementPath is where a MEP manages the records of the DNS server.
const ServerManagementPath = "/mep/dns_server_mgmt/v1/"

// PlatformAreas are those of a listener that is for platforms only.
func PlatformAreas() []Area {
	return []Area{{Prefix: "/", Roles: []string{access.RolePlatform}, Error: Problem}}
}

// AppAreas are those of a listener that is for applications only.
func AppAreas() []Area { return []Area{{Prefix: "/", Roles: []string{access.RoleApp}, Error: Problem}} }

// areaOf is the area with the longest prefix of a path. One with dots in it is nowhere but in the area of all paths, which is
// that of projects unless the listener has another: what a mux makes of it is not known here.
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

// mayEnter reports whether a caller has a role in the area.
func (a Area) mayEnter(c Caller) bool {
	return c.IsAdmin() || slices.ContainsFunc(c.Roles, func(role string) bool { return slices.Contains(a.Roles, role) })
}
