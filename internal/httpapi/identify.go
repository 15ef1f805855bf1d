package httpapi

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/nameplane/nameplane/internal/access"
)

// Identify returns the caller of a request, or errNobody when the request has no credentials.
type Identify func(*http.Request) (Caller, error)

// errNobody is the error for a request without credentials.
var errNobody = errors.New("no credentials")

// errForeignPage says that a browser made the request for a page of another site.
var errForeignPage = errors.New("request of another site's page")

// ByToken knows callers by their token or session.
func ByToken(a *access.Access) Identify {
	return func(r *http.Request) (Caller, error) {
		text := tokenOf(r)
		if text == "" {
			return Caller{}, errNobody
		}
		p, err := a.Authenticate(text)
		return CallerFor(p), err
	}
}

// ByTokenOrJWT knows callers by their token, and applications by a JWT of one of the issuers as well.
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

// commonName is the type of a common name in a subject (RFC 5280 appendix A.1).
var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// ByCertificate takes whoever has a client certificate, which the listener has verified, for a platform of the name in it. With
// names, it must be one of them: the CA may have certificates for others than platforms.
func ByCertificate(names []string) Identify {
	return func(r *http.Request) (Caller, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return Caller{}, errNobody
		}
		if err := ownPage(r); err != nil {
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
		case common > 1: // Go takes the last one; the CA may have checked another
			return Caller{}, fmt.Errorf("certificate %x has %d common names: %w", c.SerialNumber, common, access.ErrDenied)
		case name == "":
			return Caller{}, fmt.Errorf("certificate %x has no common name: %w", c.SerialNumber, access.ErrDenied)
		case len(names) > 0 && !slices.Contains(names, name):
			return Caller{}, fmt.Errorf("certificate %x of %.64q is of no platform: %w", c.SerialNumber, name, access.ErrDenied)
		}
		return Caller{Who: "certificate " + name, ID: fmt.Sprintf("%x", c.SerialNumber),
			Roles: access.Roles(access.RolePlatform)}, nil
	}
}

// Anybody takes everyone who reaches the listener for c. It is for listeners that only the right ones can reach.
func Anybody(c Caller) Identify {
	return func(r *http.Request) (Caller, error) {
		if err := ownPage(r); err != nil {
			return Caller{}, err
		}
		return c, nil
	}
}

var crossOrigin = http.NewCrossOriginProtection()

// ownPage refuses changes that a browser was talked into by a page of another site. Where a token is needed such a page has
// none; but a browser shows its certificate to everybody, and reaches a loopback address that trusts whoever does.
func ownPage(r *http.Request) error {
	if err := crossOrigin.Check(r); err != nil {
		return errForeignPage
	}
	return nil
}
