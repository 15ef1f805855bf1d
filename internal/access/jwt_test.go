package access

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const someIssuer = "https://idp.example.org/edge"

// signers returns one key of each kind, generated once, because RSA keys take a while.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	e, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, d, err3 := ed25519.GenerateKey(rand.Reader)
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err)
	}
	return map[string]crypto.Signer{"RS256": r, "PS256": r, "ES256": e, "EdDSA": d}
})

func keyPEM(t testing.TB, keys ...crypto.PublicKey) string {
	t.Helper()
	var out strings.Builder
	for _, k := range keys {
		der := must[[]byte](t)(x509.MarshalPKIXPublicKey(k))
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	return out.String()
}

func keyFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func allPublic(t testing.TB) string {
	return keyPEM(t, signers()["RS256"].Public(), signers()["ES256"].Public(), signers()["EdDSA"].Public())
}

// goodClaims returns claims of a valid JWT, with some of them changed.
func goodClaims(change map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": someIssuer, "sub": "app-1", "exp": time.Now().Add(time.Minute).Unix()}
	for k, v := range change {
		if v == nil {
			delete(c, k)
		} else {
			c[k] = v
		}
	}
	return c
}

func signed(t testing.TB, alg string, claims jwt.MapClaims, header map[string]any) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.GetSigningMethod(alg), claims)
	for k, v := range header {
		tok.Header[k] = v
	}
	return must[string](t)(tok.SignedString(signers()[alg]))
}

func TestJWT(t *testing.T) {
	is := must[*Issuers](t)(OpenIssuers([]IssuerConfig{
		{Issuer: someIssuer, Keys: keyFile(t, allPublic(t)), Leeway: 30 * time.Second},
		{Issuer: "ours", Keys: keyFile(t, allPublic(t)), Audience: "nameplane", Claim: "client_id",
			Algorithms: []string{"ES256"}},
	}))
	hour := time.Now().Add(-time.Hour).Unix()
	tests := []struct {
		name   string
		alg    string
		claims map[string]any
		header map[string]any
		app    string // empty means denied
	}{
		{"RS256", "RS256", nil, nil, "app-1"},
		{"PS256", "PS256", nil, nil, "app-1"},
		{"ES256", "ES256", nil, nil, "app-1"},
		{"EdDSA", "EdDSA", nil, nil, "app-1"},
		{"a kid that PEM files do not say", "ES256", nil, map[string]any{"kid": "k1"}, "app-1"},
		{"expired", "ES256", map[string]any{"exp": hour}, nil, ""},
		{"expired within the leeway", "ES256", map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()}, nil, "app-1"},
		{"no end", "ES256", map[string]any{"exp": nil}, nil, ""},
		{"an end that is no time", "ES256", map[string]any{"exp": "tomorrow"}, nil, ""},
		{"not yet", "ES256", map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, nil, ""},
		{"no issuer", "ES256", map[string]any{"iss": nil}, nil, ""},
		{"unknown issuer", "ES256", map[string]any{"iss": "https://evil.test"}, nil, ""},
		{"issuer that is a list", "ES256", map[string]any{"iss": []string{someIssuer}}, nil, ""},
		{"no subject", "ES256", map[string]any{"sub": nil}, nil, ""},
		{"subject that is a number", "ES256", map[string]any{"sub": 1}, nil, ""},
		{"subject that is a path", "ES256", map[string]any{"sub": "../app-2"}, nil, ""},
		{"for another audience", "ES256", map[string]any{"aud": "billing"}, nil, ""},
		{"critical header", "ES256", nil, map[string]any{"crit": []string{"b64"}}, ""},
		{"audience and claim", "ES256", map[string]any{"iss": "ours", "aud": []string{"x", "nameplane"},
			"client_id": "app-2"}, nil, "app-2"},
		{"audience missing", "ES256", map[string]any{"iss": "ours", "client_id": "app-2"}, nil, ""},
		{"wrong audience", "ES256", map[string]any{"iss": "ours", "aud": "nameplane2", "client_id": "app-2"}, nil, ""},
		{"claim missing", "ES256", map[string]any{"iss": "ours", "aud": "nameplane"}, nil, ""},
		{"algorithm not allowed here", "EdDSA", map[string]any{"iss": "ours", "aud": "nameplane", "client_id": "app-2"}, nil,
			""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := signed(t, tt.alg, goodClaims(tt.claims), tt.header)
			p, err := is.Authenticate(text)
			if tt.app == "" {
				if !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), text[len(text)-20:]) {
					t.Errorf("Authenticate = %+v, %v; want denied, without the JWT in the error", p, err)
				}
				return
			}
			if err != nil || p.App != tt.app || p.Role != RoleApp || p.Kind != kindJWT || p.Expires.IsZero() {
				t.Errorf("Authenticate = %+v, %v; want app %s", p, err, tt.app)
			}
		})
	}
}

// TestForgedJWT tries known attacks on verifiers.
func TestForgedJWT(t *testing.T) {
	public := allPublic(t)
	is := must[*Issuers](t)(OpenIssuers([]IssuerConfig{{Issuer: someIssuer, Keys: keyFile(t, public)}}))
	hmac := func(secret string) string {
		return must[string](t)(jwt.NewWithClaims(jwt.SigningMethodHS256, goodClaims(nil)).SignedString([]byte(secret)))
	}
	none := must[string](t)(jwt.NewWithClaims(jwt.SigningMethodNone,
		goodClaims(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType))
	good := signed(t, "ES256", goodClaims(nil), nil)
	parts := strings.Split(good, ".")
	body := must[[]byte](t)(json.Marshal(goodClaims(map[string]any{"sub": "app-2"})))
	other := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	tests := []struct{ name, text string }{
		{"none", none},
		{"none without its last dot", strings.TrimSuffix(none, ".")},
		{"the public key as a secret", hmac(public)},
		{"an empty secret", hmac("x")},
		{"other claims", parts[0] + "." + base64.RawURLEncoding.EncodeToString(body) + "." + parts[2]},
		{"no signature", parts[0] + "." + parts[1] + "."},
		{"another key", must[string](t)(jwt.NewWithClaims(jwt.SigningMethodES256, goodClaims(nil)).SignedString(other))},
		{"other hash", must[string](t)(jwt.NewWithClaims(jwt.SigningMethodRS512,
			goodClaims(nil)).SignedString(signers()["RS256"]))},
		{"four parts", good + "." + parts[2]},
		{"empty", ""},
		{"dots", ".."},
		{"long", good + strings.Repeat("A", maxJWT)},
		{"a token", "np_x"},
		{"another key, expired", must[string](t)(jwt.NewWithClaims(jwt.SigningMethodES256,
			goodClaims(map[string]any{"exp": 1})).SignedString(other))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := is.Authenticate(tt.text); !errors.Is(err, ErrDenied) || errors.Is(err, ErrEnded) {
				t.Errorf("Authenticate = %+v, %v; want denied", p, err)
			}
		})
	}
	if _, err := is.Authenticate(good); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

// jwksOf returns a JWKS of the keys of signers and of an encryption key.
func jwksOf(t testing.TB) string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	r := signers()["RS256"].Public().(*rsa.PublicKey)
	e := must[[]byte](t)(signers()["ES256"].Public().(*ecdsa.PublicKey).Bytes())
	set := map[string]any{"keys": []map[string]string{
		{"kty": "RSA", "kid": "r", "use": "sig", "alg": "PS256", "n": b64(r.N.Bytes()),
			"e": b64(big.NewInt(int64(r.E)).Bytes())},
		{"kty": "EC", "kid": "e", "crv": "P-256", "x": b64(e[1:33]), "y": b64(e[33:])},
		{"kty": "OKP", "kid": "d", "crv": "Ed25519", "x": b64(signers()["EdDSA"].Public().(ed25519.PublicKey))},
		{"kty": "RSA", "kid": "enc", "use": "enc", "n": "AQ", "e": "AQAB"},
		{"kty": "oct", "kid": "o", "k": "c2VjcmV0"},
		{"kty": "EC", "kid": "p384", "crv": "P-384", "x": "AQ", "y": "AQ"},
	}}
	return string(must[[]byte](t)(json.Marshal(set)))
}

func TestJWKS(t *testing.T) {
	is := must[*Issuers](t)(OpenIssuers([]IssuerConfig{{Issuer: someIssuer, Keys: keyFile(t, jwksOf(t))}}))
	tests := []struct {
		alg, kid string
		ok       bool
	}{
		{"PS256", "r", true}, {"ES256", "e", true}, {"EdDSA", "d", true}, {"ES256", "", true},
		{"RS256", "r", false}, // the key is for PS256 only
		{"ES256", "d", false}, {"ES256", "enc", false}, {"ES256", "gone", false},
	}
	for _, tt := range tests {
		header := map[string]any{"kid": tt.kid}
		if tt.kid == "" {
			header = nil
		}
		if _, err := is.Authenticate(signed(t, tt.alg, goodClaims(nil), header)); (err == nil) != tt.ok {
			t.Errorf("%s with kid %q: %v, want accepted: %v", tt.alg, tt.kid, err, tt.ok)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	weak := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024))
	p384 := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: must[[]byte](t)(x509.MarshalPKCS8PrivateKey(p384))})
	one := keyPEM(t, signers()["ES256"].Public())
	tests := []struct{ name, text, want string }{
		{"empty", "", "no usable public key"},
		{"words", "secret words", "no usable public key"},
		{"no keys", `{"keys":[]}`, "no usable public key"},
		{"not a JWKS", `{"keys":7}`, "is not a JWKS"},
		{"only symmetric", `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`, "no usable public key"},
		{"private key", string(private), "contains a private key"},
		{"private JWK", `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ","d":"c2VjcmV0"}]}`, "contains a private key"},
		{"weak RSA", keyPEM(t, weak.Public()), "RSA key of 1024 bits"},
		{"other curve", keyPEM(t, p384.Public()), "not RSA, P-256 or Ed25519"},
		{"off the curve", `{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}]}`, "key"},
		{"not base64", `{"keys":[{"kty":"RSA","n":"!","e":"AQAB"}]}`, "n is not base64url"},
		{"short Ed25519", `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ"}]}`, "32 bytes"},
		{"exponent", `{"keys":[{"kty":"RSA","n":"AQ","e":"AQABAQAB"}]}`, "e must be"},
		{"damaged PEM", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "keys"},
		{"many", strings.Repeat(one, maxKeys+1), "more than 32"},
		{"large", strings.Repeat("x", maxKeyFile+1), "larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenIssuers([]IssuerConfig{{Issuer: someIssuer, Keys: keyFile(t, tt.text)}})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("OpenIssuers = %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := OpenIssuers([]IssuerConfig{{Issuer: someIssuer,
		Keys: filepath.Join(t.TempDir(), "none")}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	_, err := OpenIssuers([]IssuerConfig{{Issuer: someIssuer, Keys: keyFile(t, one), Algorithms: []string{"HS256"}}})
	if err == nil || !strings.Contains(err.Error(), "RS256, PS256, ES256, EdDSA") {
		t.Errorf("HS256: %v", err)
	}
	twice := IssuerConfig{Issuer: someIssuer, Keys: keyFile(t, one)}
	if _, err := OpenIssuers([]IssuerConfig{twice, twice}); err == nil {
		t.Error("an issuer was accepted twice")
	}
}

// TestIssuersReload replaces the keys. JWTs of the old keys must be denied from then on, and a bad file must change
// nothing.
func TestIssuersReload(t *testing.T) {
	file := keyFile(t, keyPEM(t, signers()["ES256"].Public()))
	configs := []IssuerConfig{{Issuer: someIssuer, Keys: file}}
	is := must[*Issuers](t)(OpenIssuers(configs))
	old, next := signed(t, "ES256", goodClaims(nil), nil), signed(t, "EdDSA", goodClaims(nil), nil)
	expect := func(when string, text string, ok bool) {
		t.Helper()
		if _, err := is.Authenticate(text); (err == nil) != ok {
			t.Errorf("%s: %v, want accepted: %v", when, err, ok)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rubbish")
	if apply, err := is.Prepare(configs); err == nil || apply != nil {
		t.Error("a bad file was accepted")
	}
	expect("after a bad file", old, true)
	write(keyPEM(t, signers()["EdDSA"].Public()))
	apply := must[func()](t)(is.Prepare(configs))
	expect("prepared", old, true)
	apply()
	expect("applied, old key", old, false)
	expect("applied, new key", next, true)
}

func TestJWTEnds(t *testing.T) {
	file := keyFile(t, allPublic(t))
	synctest.Test(t, func(t *testing.T) {
		is := must[*Issuers](t)(OpenIssuers([]IssuerConfig{{Issuer: someIssuer, Keys: file, Leeway: 5 * time.Second}}))
		text := signed(t, "EdDSA", goodClaims(nil), nil) // valid for a minute
		time.Sleep(64 * time.Second)
		if _, err := is.Authenticate(text); err != nil {
			t.Errorf("within the leeway: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := is.Authenticate(text); !errors.Is(err, ErrDenied) || !errors.Is(err, ErrEnded) {
			t.Errorf("after its end: %v, want ended", err)
		}
	})
}

func FuzzJWT(f *testing.F) {
	is := must[*Issuers](f)(OpenIssuers([]IssuerConfig{{Issuer: someIssuer, Keys: keyFile(f, allPublic(f))}}))
	f.Add(signed(f, "EdDSA", goodClaims(map[string]any{"exp": 1}), nil))
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlLm9yZy9lZGdlIn0.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := is.Authenticate(text); !errors.Is(err, ErrDenied) {
			t.Errorf("Authenticate = %+v, %v", p, err)
		}
	})
}
