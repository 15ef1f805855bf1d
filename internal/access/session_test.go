package access

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/store/storetest"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestSessionEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(t *testing.T, a *Access, u User, p Principal)
	}{
		{"by time", func(t *testing.T, a *Access, u User, p Principal) { time.Sleep(time.Hour) }},
		{"by a new password", func(t *testing.T, a *Access, u User, p Principal) {
			must[User](t)(a.SetPassword(t.Context(), tester, u.ID, "battery staple"))
		}},
		{"with its user", func(t *testing.T, a *Access, u User, p Principal) {
			if err := a.DeleteUser(t.Context(), tester, u.ID); err != nil {
				t.Fatal(err)
			}
		}},
		{"when ended", func(t *testing.T, a *Access, u User, p Principal) {
			if err := a.EndSession(t.Context(), tester, p); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := open(t)
				u := must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "admin", RoleMember}))
				p := must[Principal](t)(a.Password(t.Context(), local, "alice", "correct horse"))
				s, p, err := a.Issue(p, "", "password")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(59 * time.Minute)
				if got := must[Principal](t)(a.Authenticate(s)); got.Session != p.Session || got.Role != RoleMember {
					t.Fatalf("Authenticate = %+v, want %+v", got, p)
				}
				tt.end(t, a, u, p)
				if _, err := a.Authenticate(s); !errors.Is(err, ErrDenied) {
					t.Errorf("after its end: %v, want ErrDenied", err)
				}
			})
		})
	}
}

func TestSessionOfRevokedToken(t *testing.T) {
	a, _ := open(t)
	text, tok := newToken(t, a, TokenSpec{Name: "ci", Project: "admin", Role: RoleMember})
	s, _, err := a.Issue(must[Principal](t)(a.Authenticate(text)), "", "application_credential")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.RevokeToken(t.Context(), tester, tok.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(s); !errors.Is(err, ErrDenied) {
		t.Errorf("session of a revoked token: %v, want ErrDenied", err)
	}
}

func TestSessionOutlivesRestart(t *testing.T) {
	dir := t.TempDir()
	a, stop := start(t, dir, Options{})
	if err := a.EnsureAdmin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	p := must[Principal](t)(a.Authenticate(adminToken(t, dir)))
	kept, _, err1 := a.Issue(p, "", "token")
	ended, ep, err2 := a.Issue(p, "", "token")
	if err := errors.Join(err1, err2, a.EndSession(t.Context(), tester, ep)); err != nil {
		t.Fatal(err)
	}
	stop()
	a, stop = start(t, dir, Options{})
	defer stop()
	must[Principal](t)(a.Authenticate(kept))
	if _, err := a.Authenticate(ended); !errors.Is(err, ErrDenied) {
		t.Errorf("the ended session is valid again: %v", err)
	}
}

// TestSystemScope checks that only an admin gets the system scope, and keeps it only as long as it is one.
func TestSystemScope(t *testing.T) {
	a, admin := open(t)
	must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "admin", RoleMember}))
	alice := must[Principal](t)(a.Password(t.Context(), local, "alice", "correct horse"))
	root := must[Principal](t)(a.Authenticate(admin))
	alice.System, root.System = true, true
	if s, _, err := a.Issue(alice, "", "password"); !errors.Is(err, ErrDenied) || s != "" {
		t.Errorf("Issue to a member: %v, want ErrDenied", err)
	}
	s, _, err := a.Issue(root, "", "token")
	if err != nil {
		t.Fatal(err)
	}
	if p := must[Principal](t)(a.Authenticate(s)); !p.System || p.Project.Name != "admin" {
		t.Errorf("session %+v", p)
	}
}

func TestSessionScope(t *testing.T) {
	a, admin := open(t)
	edge := must[Project](t)(a.CreateProject(t.Context(), tester, "edge", ""))
	must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "edge", RoleMember}))
	alice := must[Principal](t)(a.Password(t.Context(), local, "alice", "correct horse"))
	root := must[Principal](t)(a.Authenticate(admin))
	tests := []struct {
		name    string
		p       Principal
		project string
		want    string // project name; empty means denied
	}{
		{"own by default", alice, "", "edge"},
		{"own by name", alice, "edge", "edge"},
		{"own by id", alice, edge.ID, "edge"},
		{"another's", alice, "admin", ""},
		{"unknown", alice, "nowhere", ""},
		{"admin elsewhere", root, "edge", "edge"},
		{"admin nowhere", root, "nowhere", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _, err := a.Issue(tt.p, tt.project, "password")
			if tt.want == "" {
				if !errors.Is(err, ErrDenied) {
					t.Fatalf("Issue: %v, want ErrDenied", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p := must[Principal](t)(a.Authenticate(s))
			if p.Project.Name != tt.want || p.Role != tt.p.Role {
				t.Errorf("session for %s as %s, want %s as %s", p.Project.Name, p.Role, tt.want, tt.p.Role)
			}
		})
	}
}

// TestSessionCannotBeChanged changes the body of a session under the old signature, and flips each of its bytes.
func TestSessionCannotBeChanged(t *testing.T) {
	a, admin := open(t)
	s, _, err := a.Issue(must[Principal](t)(a.Authenticate(admin)), "", "token")
	if err != nil {
		t.Fatal(err)
	}
	body, mac, _ := strings.Cut(strings.TrimPrefix(s, sessionPrefix), ".")
	raw := must[[]byte](t)(base64.RawURLEncoding.DecodeString(body))
	later := strings.Replace(string(raw), `"e":`, `"e":9`, 1)
	forged := []string{sessionPrefix + base64.RawURLEncoding.EncodeToString([]byte(later)) + "." + mac,
		sessionPrefix + body + "."}
	for i := len(sessionPrefix); i < len(s)-1; i++ {
		forged = append(forged, s[:i]+string(s[i]^1)+s[i+1:])
	}
	for _, f := range forged {
		if _, err := a.Authenticate(f); !errors.Is(err, ErrDenied) {
			t.Fatalf("Authenticate(%s) = %v, want ErrDenied", f, err)
		}
	}
}

// TestSessionEndsThoseOpenedWithIt ends the second of four sessions, each opened with the previous one. Sessions that a
// thief opened with a stolen session must end with it.
func TestSessionEndsThoseOpenedWithIt(t *testing.T) {
	dir := t.TempDir()
	a, stop := start(t, dir, Options{})
	if err := a.EnsureAdmin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	text := adminToken(t, dir)
	var sessions []string
	for range 4 {
		var err error
		if text, _, err = a.Issue(must[Principal](t)(a.Authenticate(text)), "", "token"); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, text)
	}
	if err := a.EndSession(t.Context(), tester, must[Principal](t)(a.Authenticate(sessions[1]))); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		must[Principal](t)(a.Authenticate(sessions[0]))
		for i, s := range sessions[1:] {
			if _, err := a.Authenticate(s); !errors.Is(err, ErrDenied) {
				t.Errorf("session %d: %v, want ErrDenied", i+2, err)
			}
		}
	}
	check()
	stop()
	a, stop = start(t, dir, Options{})
	defer stop()
	check()
}

// TestSessionChainIsBounded opens sessions, each with the previous one, until that is refused.
func TestSessionChainIsBounded(t *testing.T) {
	a, text := open(t)
	for n := 0; ; n++ {
		s, _, err := a.Issue(must[Principal](t)(a.Authenticate(text)), "", "token")
		if err != nil {
			if !errors.As(err, new(*zone.InvalidError)) || n != maxParents+1 || len(text) > 1000 {
				t.Errorf("after %d sessions of %d bytes: %v", n, len(text), err)
			}
			return
		}
		text = s
	}
}

// TestNoSessionIsUnrevocable fills the table of ended sessions, as the thief of a session can do by opening and ending
// others. The stolen session can still be ended.
func TestNoSessionIsUnrevocable(t *testing.T) {
	tests := []struct {
		name string
		fill func(victim string) (subject string, n int)
		all  bool // all sessions of the victim end
	}{
		{"with the victim's session", func(victim string) (string, int) { return victim, maxEndedEach }, true},
		{"almost", func(victim string) (string, int) { return victim, maxEndedEach - 1 }, false},
		{"with those of many others", func(string) (string, int) { return "others", maxEnded }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, admin := open(t)
			must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "admin", RoleMember}))
			login := map[string]func() Principal{
				"token": func() Principal { return must[Principal](t)(a.Authenticate(admin)) },
				"user":  func() Principal { return must[Principal](t)(a.Password(t.Context(), local, "alice", "correct horse")) },
			}
			for kind, p := range login {
				subject, n := tt.fill(p().ID)
				fillEnded(t, a, subject, n)
				stolen, s, err1 := a.Issue(p(), "", "token")
				other, _, err2 := a.Issue(p(), "", "token")
				if err := errors.Join(err1, err2, a.EndSession(t.Context(), tester, s)); err != nil {
					t.Fatal(kind, err)
				}
				if _, err := a.Authenticate(stolen); !errors.Is(err, ErrDenied) {
					t.Errorf("%s: the stolen session: %v, want ErrDenied", kind, err)
				}
				if _, err := a.Authenticate(other); errors.Is(err, ErrDenied) != tt.all {
					t.Errorf("%s: another session: %v, want it ended: %v", kind, err, tt.all)
				}
				again, _, err := a.Issue(p(), "", "token")
				if err != nil {
					t.Fatal(kind, err)
				}
				must[Principal](t)(a.Authenticate(again))
			}
			must[Principal](t)(a.Authenticate(admin))
			if n := len(a.accounts.Load().ended); n > maxEnded {
				t.Errorf("%d ended sessions are stored", n)
			}
		})
	}
}

// TestEndedSessionsOfOthersAreNotRead checks that ending a session does not read the ended sessions of other users
// inside the commit, where all other changes wait.
func TestEndedSessionsOfOthersAreNotRead(t *testing.T) {
	st, err := boltstore.Open(t.TempDir()+"/store.db", boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reads := storetest.Count(st)
	a, stop := startOn(t, reads, Options{})
	defer stop()
	dir := t.TempDir()
	if err := a.EnsureAdmin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	fillEnded(t, a, "others", 5_000)
	_, s, err := a.Issue(must[Principal](t)(a.Authenticate(adminToken(t, dir))), "", "token")
	reads.Rows()
	if err := errors.Join(err, a.EndSession(t.Context(), tester, s)); err != nil {
		t.Fatal(err)
	}
	if _, rows := reads.Rows(); rows > 20 {
		t.Errorf("the commit read %d rows", rows)
	}
}

// fillEnded stores n ended sessions of a user or token.
func fillEnded(t *testing.T, a *Access, subject string, n int) {
	t.Helper()
	until := time.Now().Add(time.Hour)
	err := a.change(t.Context(), tester, func(tx *publish.Tx) error {
		for i := range n {
			id := fmt.Sprint(subject, i)
			if err := tx.PutObject(store.KindEndedSession, id, endedRow{id, until, subject}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
