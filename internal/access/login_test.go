package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	if _, err := a.Password(t.Context(), local, user, "correct horse"); !errors.As(err, &throttled) ||
		throttled.Wait != time.Second {
		t.Fatalf("after ten failures: %v, want a wait of 1s", err)
	}
	must[Principal](t)(a.Password(t.Context(), local, "admin", admin)) // logins with tokens are not throttled
	time.Sleep(time.Second)
	if _, err := a.Password(t.Context(), local, user, "wrong password"); !errors.Is(err, ErrDenied) {
		t.Fatalf("after the wait: %v, want ErrDenied", err)
	}
	if _, err := a.Password(t.Context(), local, user, "wrong password"); !errors.As(err, &throttled) ||
		throttled.Wait != 2*time.Second {
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

// TestAddressThrottle guesses the passwords of many users from one address.
func TestAddressThrottle(t *testing.T) {
	tests := []struct {
		from, again string
		want        bool // whether the login is throttled
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

// TestLongNamesAreNotKept guesses with names that fill the body of a login: counting failures by such names would take
// a GiB.
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

// TestGuessesAtOnce guesses a password with as many concurrent requests as the server takes. It must check
// only as many passwords as for sequential requests. Correct passwords that arrive at once must all be accepted.
func TestGuessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := open(t)
		must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"alice", "correct horse", "admin", RoleMember}))
		must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"bob", "battery staple", "admin", RoleMember}))
		for _, tt := range []struct {
			name, user, password    string
			taken, denied, waitMore int
		}{
			{"correct", "bob", "battery staple", 30, 0, 0},
			{"wrong", "alice", "wrong password", 0, 10, 20},
			{"wrong for many users", "", "wrong password", 0, 10, 20}, // 10 failures of the address were counted above
			{"correct after them", "bob", "battery staple", 0, 0, 30},
		} {
			results := make(chan error)
			for i := range 30 {
				user := tt.user
				if user == "" {
					user = fmt.Sprint("user", i)
				}
				go func() {
					_, err := a.Password(t.Context(), netip.MustParseAddr("192.0.2.1"), user, tt.password)
					results <- err
				}()
			}
			var taken, denied, waitMore int
			for range 30 {
				switch err := <-results; {
				case err == nil:
					taken++
				case errors.Is(err, ErrDenied):
					denied++
				case errors.As(err, new(*ThrottledError)):
					waitMore++
				default:
					t.Error(err)
				}
			}
			if taken != tt.taken || denied != tt.denied || waitMore != tt.waitMore {
				t.Errorf("%s: %d accepted, %d denied, %d must wait; want %d, %d, %d", tt.name, taken, denied, waitMore,
					tt.taken, tt.denied, tt.waitMore)
			}
		}
	})
}

func TestThrottleIsBounded(t *testing.T) {
	th := throttle{free: 1, first: time.Hour, longest: time.Hour}
	for i := range 2 * maxThrottled {
		th.attempt(fmt.Sprint(i))
	}
	if n := len(th.entries); n > maxThrottled {
		t.Errorf("%d entries, want at most %d", n, maxThrottled)
	}
	if th.wait(fmt.Sprint(2*maxThrottled-1)) == 0 {
		t.Error("the newest failure was not kept")
	}
}

// TestFailuresOfAddresses checks which addresses share a count of invalid credentials.
func TestFailuresOfAddresses(t *testing.T) {
	tests := []struct {
		from, again string
		want        time.Duration
	}{
		{"192.0.2.1", "192.0.2.1", time.Second},
		{"192.0.2.1", "::ffff:192.0.2.1", time.Second},
		{"192.0.2.1", "192.0.2.2", 0},
		{"2001:db8::1", "2001:db8::ffff:2", time.Second},
		{"2001:db8::1", "2001:db8:0:1::1", 0},
		{"127.0.0.1", "127.0.0.1", time.Second},
		{"::1", "127.0.0.1", 0},
	}
	for _, tt := range tests {
		t.Run(tt.from+" "+tt.again, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFailures()
				for i := range 20 {
					if wait := f.Count(netip.MustParseAddr(tt.from)); wait != 0 {
						t.Fatalf("failure %d: wait %s", i, wait)
					}
				}
				if wait := f.Count(netip.MustParseAddr(tt.again)); wait != tt.want {
					t.Errorf("wait %s, want %s", wait, tt.want)
				}
			})
		})
	}
}

// TestFailuresAreBounded sends invalid credentials from more addresses than are kept.
func TestFailuresAreBounded(t *testing.T) {
	f := NewFailures()
	for i := range 2 * maxThrottled {
		f.Count(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if n := len(f.addrs.entries); n > maxThrottled || n < maxThrottled/2 {
		t.Errorf("%d addresses are kept, want at most %d", n, maxThrottled)
	}
}

func TestHasherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheap)
		if _, err := h.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		done, err := h.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				_, err := h.acquire(ctx)
				got <- err
			}()
		}
		synctest.Wait()
		if _, err := h.acquire(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("with a full queue: %v, want ErrBusy", err)
		}
		cancel()
		for range maxWaiting {
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting when the caller canceled: %v", err)
			}
		}
		done()
		done, err = h.acquire(t.Context())
		if err != nil {
			t.Fatalf("slots were not released: %v", err)
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
			t.Errorf("decodeHash(%q) accepted it", s)
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

// BenchmarkPassword measures a login at the default cost.
func BenchmarkPassword(b *testing.B) {
	h := newHasher(HashParams{Memory: 19 << 10, Passes: 2, Lanes: 1})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := checkPassword("correct horse", h.dummy); err != nil {
			b.Fatal(err)
		}
	}
}
