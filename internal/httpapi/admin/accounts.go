package admin

import (
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// token is a token in replies. Revoked and expired tokens stay in the list for a while, so that an audit finds them.
type token struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	ProjectID   string     `json:"project_id"`
	ProjectName string     `json:"project_name"`
	Role        string     `json:"role"`
	App         string     `json:"app,omitempty"`
	Created     time.Time  `json:"created_at"`
	Expires     *time.Time `json:"expires_at"`
	Revoked     *time.Time `json:"revoked_at"`
	LastUsed    *time.Time `json:"last_used_at"`
	Secret      string     `json:"token,omitempty"` // the text of the token; only in the reply to its creation
}

// user is a user in replies. There is no field for the password: it can only be set.
type user struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	ProjectID   string    `json:"project_id"`
	ProjectName string    `json:"project_name"`
	Role        string    `json:"role"`
	Created     time.Time `json:"created_at"`
	Changed     time.Time `json:"password_changed_at"`
}

// optional returns nil for the zero time, which means never.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (d *server) projectName(id string) string {
	p, err := d.Access.Project(id)
	if err != nil {
		return "" // the project was deleted
	}
	return p.Name
}

// token returns the JSON form of a token. It has no secret, because the store has only the hash.
func (d *server) token(t access.Token) token {
	return token{ID: t.ID, Name: t.Name, ProjectID: t.Project, ProjectName: d.projectName(t.Project), Role: t.Role,
		App:     t.App,
		Created: t.Created, Expires: optional(t.Expires), Revoked: optional(t.Revoked), LastUsed: optional(t.LastUsed)}
}

func (d *server) user(u access.User) user {
	return user{u.ID, u.Name, u.Project, d.projectName(u.Project), u.Role, u.Created, u.Changed}
}

// listTokens lists all tokens, without their secrets: the server stores only hashes.
func (d *server) listTokens(w http.ResponseWriter, r *http.Request) error {
	n, _, _ := d.Access.Counts()
	if err := reserve(r, n); err != nil {
		return err
	}
	out := []token{}
	for _, t := range d.Access.Tokens() {
		out = append(out, d.token(t))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"tokens": out})
	return nil
}

// createToken creates a token. The default project is the one of the caller.
func (d *server) createToken(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name    string    `json:"name"`
		Project string    `json:"project"`
		Role    string    `json:"role"`
		App     string    `json:"app"`
		Expires time.Time `json:"expires_at"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	if in.Project == "" {
		in.Project = httpapi.CallerOf(r.Context()).Project
	}
	text, t, err := d.Access.CreateToken(r.Context(), actor(r), access.TokenSpec(in))
	if err != nil {
		return err
	}
	out := d.token(t)
	out.Secret = text
	httpapi.JSON(w, http.StatusCreated, map[string]any{"token": out})
	return nil
}

// revokeToken revokes a token and ends its sessions. Package access refuses to revoke the last administrator (409):
// nobody could undo that.
func (d *server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if err := d.Access.RevokeToken(r.Context(), actor(r), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *server) listUsers(w http.ResponseWriter, r *http.Request) error {
	_, n, _ := d.Access.Counts()
	if err := reserve(r, n); err != nil {
		return err
	}
	out := []user{}
	for _, u := range d.Access.Users() {
		out = append(out, d.user(u))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"users": out})
	return nil
}

// createUser creates a user. The default project is the one of the caller.
func (d *server) createUser(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name     string `json:"name"`
		Password string `json:"password"`
		Project  string `json:"project"`
		Role     string `json:"role"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	if in.Project == "" {
		in.Project = httpapi.CallerOf(r.Context()).Project
	}
	u, err := d.Access.CreateUser(r.Context(), actor(r), access.UserSpec(in))
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusCreated, map[string]any{"user": d.user(u)})
	return nil
}

// setPassword changes only the password: the project and the role of a user are fixed.
func (d *server) setPassword(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Password string `json:"password"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	u, err := d.Access.SetPassword(r.Context(), actor(r), r.PathValue("id"), in.Password)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"user": d.user(u)})
	return nil
}

// deleteUser deletes a user and ends its sessions. The last administrator cannot be deleted (409).
func (d *server) deleteUser(w http.ResponseWriter, r *http.Request) error {
	if err := d.Access.DeleteUser(r.Context(), actor(r), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
