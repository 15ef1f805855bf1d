package access

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/nameplane/nameplane/internal/zone"
)

// IssuerConfig configures an issuer whose JWTs prove that a client is an application instance.
type IssuerConfig struct {
	Issuer string // value of the claim iss; compared exactly
	Keys   string // file with the issuer's public keys: PEM or JWKS

	// Audience must be in the claim aud. When Audience is empty, a JWT with an audience is refused: it was issued for
	// somebody, and the configuration does not say that this server is meant (RFC 7519 §4.1.3).
	Audience string

	Algorithms []string      // subset of Algorithms; default all of them
	Claim      string        // claim that has the ID of the application instance; default sub
	Leeway     time.Duration // accepted difference between the clocks
}

// Algorithms lists the supported signature algorithms. They are all public-key algorithms. With "none" or an HMAC,
// every party that can verify a JWT could also sign one.
var Algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// Issuers authenticates the JWTs of the configured issuers.
type Issuers struct {
	now atomic.Pointer[map[string]*issuer] // issuers by name
}

// issuer is one issuer with the keys that were last read from its file.
type issuer struct {
	IssuerConfig
	keys   []publicKey
	parser *jwt.Parser
}

// OpenIssuers reads the keys of issuers.
func OpenIssuers(configs []IssuerConfig) (*Issuers, error) {
	is := new(Issuers)
	apply, err := is.Prepare(configs)
	if err != nil {
		return nil, err
	}
	apply()
	return is, nil
}

// Prepare reads the configurations and keys of all issuers again. They take effect when apply is called. After an
// error, everything stays as it is.
func (is *Issuers) Prepare(configs []IssuerConfig) (apply func(), err error) {
	next := map[string]*issuer{}
	for _, c := range configs {
		i, err := newIssuer(c)
		if err != nil {
			return nil, fmt.Errorf("JWT issuer %q: %w", c.Issuer, err)
		}
		if next[c.Issuer] != nil {
			return nil, fmt.Errorf("JWT issuer %q is configured twice", c.Issuer)
		}
		next[c.Issuer] = i
	}
	return func() { is.now.Store(&next) }, nil
}

func newIssuer(c IssuerConfig) (*issuer, error) {
	c.Claim = cmp.Or(c.Claim, "sub")
	if len(c.Algorithms) == 0 {
		c.Algorithms = Algorithms
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(Algorithms, a) {
			return nil, &zone.InvalidError{Field: "algorithms", Reason: "must be among " + strings.Join(Algorithms, ", ")}
		}
	}
	keys, err := readKeys(c.Keys)
	if err != nil {
		return nil, err
	}
	opts := []jwt.ParserOption{jwt.WithValidMethods(c.Algorithms), jwt.WithIssuer(c.Issuer), jwt.WithExpirationRequired(),
		jwt.WithLeeway(c.Leeway), jwt.WithStrictDecoding()}
	if c.Audience != "" {
		opts = append(opts, jwt.WithAudience(c.Audience))
	}
	return &issuer{c, keys, jwt.NewParser(opts...)}, nil
}

// maxJWT bounds what is parsed for a client that is not authenticated yet. The largest JWTs of identity providers have
// about 4 KiB.
const maxJWT = 8 << 10

// IsJWT reports whether a text has the form of a signed JWT, with two dots. Tokens have no dots, and sessions have one.
func IsJWT(text string) bool { return strings.Count(text, ".") == 2 }

// Authenticate returns the application instance that presents this JWT, or ErrDenied.
func (is *Issuers) Authenticate(text string) (Principal, error) {
	if len(text) > maxJWT {
		return Principal{}, fmt.Errorf("JWT of %d bytes: %w", len(text), ErrDenied)
	}
	claims := jwt.MapClaims{}
	// The claims are not verified yet. They are used only to select the issuer.
	if _, _, err := jwt.NewParser().ParseUnverified(text, claims); err != nil {
		return Principal{}, fmt.Errorf("JWT cannot be read: %w", ErrDenied)
	}
	name, _ := claims["iss"].(string)
	i := (*is.now.Load())[name]
	if i == nil {
		return Principal{}, fmt.Errorf("JWT of issuer %.64q, which is not configured: %w", name, ErrDenied)
	}
	return i.authenticate(text)
}

func (i *issuer) authenticate(text string) (Principal, error) {
	claims := jwt.MapClaims{}
	if _, err := i.parser.ParseWithClaims(text, claims, i.keysFor); err != nil {
		if errors.Is(err, jwt.ErrTokenExpired) { // the parser checks the signature first
			return Principal{}, fmt.Errorf("JWT of %s: %w: %w", i.Issuer, err, ErrEnded)
		}
		return Principal{}, fmt.Errorf("JWT of %s: %w: %w", i.Issuer, err, ErrDenied)
	}
	if claims["aud"] != nil && i.Audience == "" {
		return Principal{}, fmt.Errorf("JWT of %s has an audience, and none is configured: %w", i.Issuer, ErrDenied)
	}
	app, _ := claims[i.Claim].(string)
	if !validApp(app) {
		return Principal{}, fmt.Errorf("JWT of %s: claim %s is not the ID of an application instance: %w", i.Issuer,
			i.Claim, ErrDenied)
	}
	p := Principal{Kind: kindJWT, ID: app, Name: app, Role: RoleApp, App: app}
	if t, err := claims.GetIssuedAt(); err == nil && t != nil {
		p.Issued = t.Time
	}
	if t, err := claims.GetExpirationTime(); err == nil && t != nil {
		p.Expires = t.Time
	}
	return p, nil
}

// keysFor returns the keys that may have signed a JWT.
func (i *issuer) keysFor(t *jwt.Token) (any, error) {
	if t.Header["crit"] != nil {
		return nil, fmt.Errorf("the crit header lists an unknown extension") // RFC 7515 §4.1.11
	}
	kid, _ := t.Header["kid"].(string)
	var set jwt.VerificationKeySet
	for _, k := range i.keys {
		if k.verifies(t.Method.Alg()) && (kid == "" || k.id == "" || k.id == kid) {
			set.Keys = append(set.Keys, k.key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("no key for algorithm %s and kid %.64q", t.Method.Alg(), kid)
	}
	return set, nil
}
