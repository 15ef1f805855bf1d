package httpapi

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/access"
)

// Identify returns the caller of a request, or errNobody when the request has no credentials.
type Identify func(*http.Request) (Caller, error)

// errNobody is the error for a request without credentials.
var errNobody = errors.New("no credentials")

// errCrossSite is the error for a change that a browser sent for a page of another site.
var errCrossSite = errors.New("request of another site's page")

// ByToken identifies callers by their token or session.
func ByToken(a *access.Access) Identify {
	return func(r *http.Request) (Caller, error) {
		text := tokenOf(r)
		if text == "" {
			return Caller{}, errNobody
		}
		return callerWith(a, text)
	}
}

// ByTokenOrFile identifies callers by their token, which may also be the password of basic authentication: the only
// credentials that external-dns can send are those in its URL. A request without credentials has the token in the file,
// unless file is empty. The file is read for each request, so that a new token takes effect at once.
func ByTokenOrFile(a *access.Access, file string) Identify {
	return func(r *http.Request) (Caller, error) {
		text := tokenOf(r)
		if text != "" {
			return callerWith(a, text)
		}
		if err := checkSameSite(r); err != nil {
			return Caller{}, err
		}
		if _, password, ok := r.BasicAuth(); ok {
			return callerWith(a, password)
		}
		if file == "" || r.Header.Get("Authorization") != "" {
			return Caller{}, errNobody
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return Caller{}, err
		}
		return callerWith(a, strings.TrimSpace(string(b)))
	}
}

func callerWith(a *access.Access, token string) (Caller, error) {
	p, err := a.Authenticate(token)
	return CallerFor(p), err
}

// ByTokenOrJWT identifies callers by their token, and applications also by a JWT of one of the issuers.
func ByTokenOrJWT(a *access.Access, issuers *access.Issuers) Identify {
	byToken := ByToken(a)
	return func(r *http.Request) (Caller, error) {
		text := tokenOf(r)
		if !access.IsJWT(text) {
			return byToken(r)
		}
		p, err := issuers.Authenticate(text)
		return CallerFor(p), err
	}
}

// commonName is the OID of a common name in a subject (RFC 5280 appendix A.1).
var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// ByCertificate identifies a platform by the common name of its client certificate, which the listener has verified. If
// names is not empty, the name must be one of them: the CA may also issue certificates to others than platforms.
func ByCertificate(names []string) Identify {
	return func(r *http.Request) (Caller, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return Caller{}, errNobody
		}
		if err := checkSameSite(r); err != nil {
			return Caller{}, err
		}
		c := r.TLS.VerifiedChains[0][0]
		name := c.Subject.CommonName
		common := 0
		for _, a := range c.Subject.Names {
			if a.Type.Equal(commonName) {
				common++
			}
		}
		switch {
		case common > 1: // Go uses the last one; the CA may have checked another
			return Caller{}, fmt.Errorf("certificate %x has %d common names: %w", c.SerialNumber, common, access.ErrDenied)
		case name == "":
			return Caller{}, fmt.Errorf("certificate %x has no common name: %w", c.SerialNumber, access.ErrDenied)
		case len(names) > 0 && !slices.Contains(names, name):
			return Caller{}, fmt.Errorf("certificate %x has the name %.64q, which is not the name of a platform: %w",
				c.SerialNumber, name, access.ErrDenied)
		}
		return Caller{Who: "certificate " + name, ID: fmt.Sprintf("%x", c.SerialNumber),
			Roles: access.Roles(access.RolePlatform)}, nil
	}
}

// Anybody identifies every client of the listener as c. It is for listeners that only trusted clients can reach.
func Anybody(c Caller) Identify {
	return func(r *http.Request) (Caller, error) {
		if err := checkSameSite(r); err != nil {
			return Caller{}, err
		}
		return c, nil
	}
}

var crossOrigin = http.NewCrossOriginProtection()

// checkSameSite refuses changes that a page of another site makes through a browser (CSRF). A page cannot send a token.
// But a browser sends its client certificate for any page, and it can reach a loopback address that trusts every
// client.
func checkSameSite(r *http.Request) error {
	if err := crossOrigin.Check(r); err != nil {
		return errCrossSite
	}
	return nil
}
