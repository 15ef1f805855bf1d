package access

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

var local = netip.MustParseAddr("127.0.0.1")

func TestPassword(t *testing.T) {
	a, admin := open(t)
	u := must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "admin", RoleMember}))
	tokenID, _, _ := parseToken(admin)
	tests := []struct {
		name, user, password string
		want                 string
	}{
		{"user by name", "alice", "correct horse", "user alice"},
		{"user by id", u.ID, "correct horse", "user alice"},
		{"wrong password", "alice", "correct house", ""},
		{"unknown user", "bob", "correct horse", ""},
		{"empty", "", "", ""},
		{"too long", "alice", strings.Repeat("x", maxPassword+1), ""},
		{"token as password", "admin", admin, "token admin"},
		{"token id as user", tokenID, admin, "token admin"},
		{"token of another name", "alice", admin, ""},
		{"wrong token", "admin", admin[:len(admin)-1] + "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "wrong token" && strings.HasSuffix(admin, "a") {
				tt.password = admin[:len(admin)-1] + "b"
			}
			p, err := a.Password(t.Context(), local, tt.user, tt.password)
			if tt.want == "" {
				if !errors.Is(err, ErrDenied) {
					t.Fatalf("Password = %v, %v; want ErrDenied", p, err)
				}
				return
			}
			if err != nil || p.Who() != tt.want {
				t.Fatalf("Password = %v, %v; want %s", p.Who(), err, tt.want)
			}
		})
	}
}

func TestCredential(t *testing.T) {
	a, admin := open(t)
	id, secret, _ := parseToken(admin)
	for _, s := range []string{secret, admin} {
		if p, err := a.Credential(id, s); err != nil || p.Name != "admin" {
			t.Errorf("Credential = %v, %v", p, err)
		}
	}
	if _, err := a.Credential(strings.Repeat("z", 16), admin); !errors.Is(err, ErrDenied) {
		t.Errorf("a token with another id: %v, want ErrDenied", err)
	}
}

func TestLoginThrottle(t *testing.T) {
	for _, user := range []string{"alice", "nobody"} {
		t.Run(user, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { throttleUser(t, user) }) })
	}
}

func throttleUser(t *testing.T, user string) {
	a, admin := open(t)
	must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "admin", RoleMember}))
	for i := range 10 {
		if _, err := a.Password(t.Context(), local, user, "wrong password"); !errors.Is(err, ErrDenied) {
			t.Fatalf("try %d: %v, want ErrDenied", i, err)
		}
	}
	var throttled *ThrottledError
	if _, err := a.Password(t.Context(), local, user, "correct horse"); !errors.As(err, &throttled) || throttled.Wait != time.Second {
		t.Fatalf("after ten failures: %v, want a wait of 1s", err)
	}
	must[Principal](t)(a.Password(t.Context(), local, "admin", admin)) // tokens are not touched
	time.Sleep(time.Second)
	if _, err := a.Password(t.Context(), local, user, "wrong password"); !errors.Is(err, ErrDenied) {
		t.Fatalf("after the wait: %v, want ErrDenied", err)
	}
	if _, err := a.Password(t.Context(), local, user, "wrong password"); !errors.As(err, &throttled) || throttled.Wait != 2*time.Second {
		t.Fatalf("after eleven failures: %v, want a wait of 2s", err)
	}
	time.Sleep(2 * time.Second)
	if user == "alice" {
		must[Principal](t)(a.Password(t.Context(), local, user, "correct horse"))
		if _, err := a.Password(t.Context(), local, user, "wrong password"); !errors.Is(err, ErrDenied) {
			t.Fatalf("a success did not clear the count: %v", err)
		}
		must[Principal](t)(a.Password(t.Context(), local, user, "correct horse"))
	}
}

// TestAddressThrottle guesses the passwords of many users.
func TestAddressThrottle(t *testing.T) {
	tests := []struct {
		from, again string
		want        bool // throttled
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::ffff:2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"127.0.0.1", "127.0.0.1", false},
		{"::1", "::1", false},
	}
	for _, tt := range tests {
		t.Run(tt.from+" "+tt.again, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := open(t)
				for i := range 20 {
					_, err := a.Password(t.Context(), netip.MustParseAddr(tt.from), fmt.Sprint("user", i), "wrong password")
					if !errors.Is(err, ErrDenied) {
						t.Fatalf("try %d: %v, want ErrDenied", i, err)
					}
				}
				_, err := a.Password(t.Context(), netip.MustParseAddr(tt.again), "alice", "wrong password")
				if got := errors.As(err, new(*ThrottledError)); got != tt.want {
					t.Errorf("throttled: %v (%v), want %v", got, err, tt.want)
				}
			})
		})
	}
}

// TestLongNamesAreNotKept guesses with names that fill the login's body: to count each would take a GiB.
func TestLongNamesAreNotKept(t *testing.T) {
	a, _ := open(t)
	long := strings.Repeat("x", 60<<10)
	for range 30 {
		if _, err := a.Password(t.Context(), local, long, "correct horse"); !errors.Is(err, ErrDenied) {
			t.Fatalf("Password = %v, want denied", err)
		}
	}
	if n := len(a.logins.entries); n != 0 {
		t.Errorf("%d names are kept", n)
	}
}

// TestEndedSessionsOfOne fills what one token may end: others still end theirs.
func TestEndedSessionsOfOne(t *testing.T) {
	a, admin := open(t)
	_, greedy, err := a.CreateToken(t.Context(), tester, TokenSpec{Name: "greedy", Project: "admin", Role: RoleReader})
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour)
	err = a.change(t.Context(), tester, func(tx *publish.Tx) error {
		for i := range maxEndedEach {
			id := fmt.Sprint("s", i)
			if err := tx.PutObject(store.KindEndedSession, id, endedRow{id, until, greedy.ID}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Authenticate(admin)
	if err != nil {
		t.Fatal(err)
	}
	_, session, err := a.Issue(p, "", "token")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EndSession(t.Context(), tester, session); err != nil {
		t.Errorf("EndSession of another = %v", err)
	}
	if err := a.EndSession(t.Context(), tester, Principal{ID: greedy.ID, Session: "x", Expires: until}); !errors.Is(err, ErrBusy) {
		t.Errorf("EndSession of the greedy one = %v, want busy", err)
	}
}

func TestThrottleIsBounded(t *testing.T) {
	th := throttle{free: 1, first: time.Hour, longest: time.Hour}
	for i := range 2 * maxThrottled {
		th.failed(fmt.Sprint(i))
	}
	if n := len(th.entries); n > maxThrottled {
		t.Errorf("%d entries, want at most %d", n, maxThrottled)
	}
	if th.wait(fmt.Sprint(2*maxThrottled-1)) == 0 {
		t.Error("the newest failure was not kept")
	}
}

func TestHasherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheap)
		if _, err := h.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		done, err := h.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, waiting)
		for range waiting {
			go func() {
				_, err := h.take(ctx)
				got <- err
			}()
		}
		synctest.Wait()
		if _, err := h.take(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("with a full queue: %v, want ErrBusy", err)
		}
		cancel()
		for range waiting {
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting when the caller left: %v", err)
			}
		}
		done()
		done, err = h.take(t.Context())
		if err != nil {
			t.Fatalf("places were not given back: %v", err)
		}
		done()
	})
}

func TestDecodeHash(t *testing.T) {
	good := encodeHash(cheap, make([]byte, 16), make([]byte, 32))
	if p, _, _, err := decodeHash(good); err != nil || p != cheap {
		t.Fatalf("decodeHash(%s) = %v, %v", good, p, err)
	}
	for _, s := range []string{"", "x", "$argon2id$v=19$m=0,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$" + strings.Repeat("A", 43),
		strings.Replace(good, "m=64", "m=4294967295", 1), strings.Replace(good, "t=1", "t=4000000000", 1),
		strings.Replace(good, "argon2id", "argon2i", 1), good[:60]} {
		if _, _, _, err := decodeHash(s); err == nil {
			t.Errorf("decodeHash(%q) took it", s)
		}
	}
}

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
		t.Errorf("the ended session came back: %v", err)
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
		want    string // project name; empty: denied
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

// TestSessionCannotBeChanged gives a session another body under the old signature, and flips each of its octets.
func TestSessionCannotBeChanged(t *testing.T) {
	a, admin := open(t)
	s, _, err := a.Issue(must[Principal](t)(a.Authenticate(admin)), "", "token")
	if err != nil {
		t.Fatal(err)
	}
	body, mac, _ := strings.Cut(strings.TrimPrefix(s, sessionPrefix), ".")
	raw := must[[]byte](t)(base64.RawURLEncoding.DecodeString(body))
	later := strings.Replace(string(raw), `"e":`, `"e":9`, 1)
	forged := []string{sessionPrefix + base64.RawURLEncoding.EncodeToString([]byte(later)) + "." + mac, sessionPrefix + body + "."}
	for i := len(sessionPrefix); i < len(s)-1; i++ {
		forged = append(forged, s[:i]+string(s[i]^1)+s[i+1:])
	}
	for _, f := range forged {
		if _, err := a.Authenticate(f); !errors.Is(err, ErrDenied) {
			t.Fatalf("Authenticate(%s) = %v, want ErrDenied", f, err)
		}
	}
}

func FuzzAuthenticate(f *testing.F) {
	a, admin := open(f)
	s, _, err := a.Issue(must[Principal](f)(a.Authenticate(admin)), "", "token")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(tokenPrefix + strings.Repeat("a", 16) + "_" + strings.Repeat("a", 52))
	f.Add(s[:len(s)-2])
	f.Add(sessionPrefix + "e30.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := a.Authenticate(text); !errors.Is(err, ErrDenied) && text != admin && text != s {
			t.Errorf("Authenticate(%q) = %v, want ErrDenied", text, err)
		}
	})
}

// BenchmarkPassword is a login at the default cost.
func BenchmarkPassword(b *testing.B) {
	h := newHasher(HashParams{Memory: 19 << 10, Passes: 2, Lanes: 1})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.check(b.Context(), "correct horse", h.dummy); err != nil {
			b.Fatal(err)
		}
	}
}
