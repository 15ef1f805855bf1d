package identity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/strictjson"
	"github.com/nameplane/nameplane/internal/zone"
)

// The authentication methods of Keystone.
const (
	methodPassword   = "password"
	methodToken      = "token"
	methodCredential = "application_credential"
)

// login is the parsed body of a login.
type login struct {
	method  string
	user    string // the name or id of the user, or the id of the application credential
	secret  string // the password, secret or token
	project string // the id or name of the project; empty: the user's own
	system  bool   // the system scope is requested
}

// loginBody is the body of POST /v3/auth/tokens. The scope is parsed later, because it is an object or a string.
type loginBody struct {
	Auth *struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password *struct {
				User userBody `json:"user"`
			} `json:"password"`
			Token *struct {
				ID string `json:"id"`
			} `json:"token"`
			Credential *struct {
				ID     string    `json:"id"`
				Name   string    `json:"name"`
				Secret string    `json:"secret"`
				User   *userBody `json:"user"`
			} `json:"application_credential"`
		} `json:"identity"`
		Scope json.RawMessage `json:"scope"`
	} `json:"auth"`
}

type userBody struct {
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Password string      `json:"password"`
	Domain   *domainBody `json:"domain"`
}

type domainBody struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type scopeBody struct {
	Project *struct {
		ID     string      `json:"id"`
		Name   string      `json:"name"`
		Domain *domainBody `json:"domain"`
	} `json:"project"`
	Domain *domainBody `json:"domain"`
	System *struct {
		All bool `json:"all"`
	} `json:"system"`
}

func invalid(field, reason string) error { return &zone.InvalidError{Field: field, Reason: reason} }

// decodeLogin parses the body of a login. Its errors are *zone.InvalidError, access.ErrDenied, or those of the reader.
func decodeLogin(r io.Reader) (login, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return login{}, err
	}
	var b loginBody
	if err := strictjson.Unmarshal(raw, &b); err != nil {
		if twice := (*zone.InvalidError)(nil); errors.As(err, &twice) {
			return login{}, err
		}
		// The text of the decoder can quote the body, and so a password.
		return login{}, invalid(strictjson.Whole, "must be JSON of the form {\"auth\": {\"identity\": ...}}")
	}
	if b.Auth == nil {
		return login{}, invalid("auth", "is missing")
	}
	l, err := b.method()
	if err != nil {
		return login{}, err
	}
	l.project, l.system, err = scope(b.Auth.Scope)
	return l, err
}

// method returns the credential of a login. Exactly one method is allowed: Keystone accepts several as multiple
// factors, and this server has none of these.
func (b loginBody) method() (login, error) {
	id := b.Auth.Identity
	if len(id.Methods) != 1 {
		return login{}, invalid("auth.identity.methods", "must name exactly one of password, token, application_credential")
	}
	switch m := id.Methods[0]; {
	case m == methodPassword && id.Password != nil:
		u := id.Password.User
		return login{method: m, user: cmp.Or(u.ID, u.Name), secret: u.Password}, checkDomain(u.Domain)
	case m == methodToken && id.Token != nil:
		return login{method: m, secret: id.Token.ID}, nil
	case m == methodCredential && id.Credential != nil:
		c := id.Credential
		if c.ID == "" {
			return login{}, invalid("auth.identity.application_credential.id", "is missing: it is the id of a token, "+
				"and names are not unique here")
		}
		return login{method: m, user: c.ID, secret: c.Secret}, nil
	case m == methodPassword || m == methodToken || m == methodCredential:
		return login{}, invalid("auth.identity."+m, "is missing")
	}
	return login{}, invalid("auth.identity.methods", "must name one of password, token, application_credential")
}

// scope returns the requested project, and whether the system scope is requested. Clients that ask for none, or for
// "unscoped", get the project of the user: a session without a project has no use here. A session with the system scope
// acts for the project of the user too.
func scope(raw json.RawMessage) (project string, system bool, err error) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `"unscoped"` {
		return "", false, nil
	}
	var s scopeBody
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false, invalid("auth.scope", `must be {"project": ...} or {"system": {"all": true}}`)
	}
	switch {
	case s.Project != nil:
		if err := checkDomain(s.Project.Domain); err != nil {
			return "", false, err
		}
		project := cmp.Or(s.Project.ID, s.Project.Name)
		if project == "" {
			return "", false, invalid("auth.scope.project", "needs an id or a name")
		}
		return project, false, nil
	case s.System != nil && !s.System.All:
		return "", false, invalid("auth.scope.system", `must be {"all": true}`)
	case s.System != nil:
		return "", true, nil
	case s.Domain != nil:
		return "", false, fmt.Errorf("scope of a domain, where nobody has roles: %w", access.ErrDenied)
	}
	return "", false, nil
}

// checkDomain refuses every domain except the default one. No domain means the default one.
func checkDomain(d *domainBody) error {
	if d == nil || strings.EqualFold(d.ID, domainID) ||
		d.ID == "" && (d.Name == "" || strings.EqualFold(d.Name, domainName)) {
		return nil
	}
	return fmt.Errorf("domain %.64q %.64q is not known: %w", d.ID, d.Name, access.ErrDenied)
}
