package service

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Observation is the result of one check of the proofs of ownership of a domain.
type Observation string

// The observations.
const (
	ProofFound   Observation = "found"   // one of the proofs is complete
	ProofMissing Observation = "missing" // all proofs were checked, and none is complete
	ProofUnknown Observation = "unknown" // servers did not answer, or no proof is asked for
)

// Ownership is what a program remembers about the ownership of a domain between two checks. The zero Ownership is that
// of a domain that was never verified.
type Ownership struct {
	Verified bool      `json:"verified"`
	Seen     time.Time `json:"seen,omitzero"`    // when a proof was last found
	Missed   time.Time `json:"missed,omitzero"`  // the first check after Seen that found none
	Misses   int       `json:"misses,omitempty"` // the number of such checks
}

// A verified domain stays verified until this many checks found no proof, the last of them this long after the first.
// A short outage of a DNS host, or a mistake that is corrected soon, must not stop a service.
const (
	graceMisses = 3
	graceTime   = 24 * time.Hour
)

// Next returns the state after an observation. An unknown result changes nothing.
func (o Ownership) Next(seen Observation, at time.Time) Ownership {
	switch seen {
	case ProofFound:
		return Ownership{Verified: true, Seen: at}
	case ProofMissing:
		if o.Misses == 0 {
			o.Missed = at
		}
		o.Misses++
		if o.Misses >= graceMisses && at.Sub(o.Missed) >= graceTime {
			o.Verified = false
		}
	}
	return o
}

// GraceEnds returns the earliest time at which a domain whose proof is missing becomes unverified.
func (o Ownership) GraceEnds() time.Time { return o.Missed.Add(graceTime) }

// Token is a text at a URL of the hostname that proves its ownership.
type Token struct {
	URL  string `json:"url"`
	Body string `json:"body"`
}

// MaxToken limits the size of the text of a Token, and of the reply that is read for it.
const MaxToken = 1 << 10

// ParseToken parses a token of a hostname in the form URL=TEXT. The URL must be one of the hostname itself: everybody
// can put a text at a URL of another host.
func ParseToken(host, text string) (*Token, error) {
	address, body, ok := strings.Cut(text, "=")
	if !ok || body == "" {
		return nil, errors.New("must have the form URL=TEXT")
	}
	if len(body) > MaxToken {
		return nil, fmt.Errorf("the text has %d bytes; at most %d are allowed", len(body), MaxToken)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" || u.Port() != "" || u.User != nil || u.RawQuery+u.Fragment != "":
		return nil, fmt.Errorf("the URL %q must have the form http://%s/PATH", address, host)
	case normal(u.Host) != normal(host):
		return nil, fmt.Errorf("the URL %q is not one of %s", address, host)
	case u.Path == "":
		u.Path = "/"
	}
	return &Token{URL: u.String(), Body: body}, nil
}

// Holds reports whether the body of a page is the token. Files often end with a line break.
func (t Token) Holds(body string) bool { return strings.TrimSpace(body) == strings.TrimSpace(t.Body) }

// SameForm reports whether a text seems to be another token of the same issuer: as long, and with the same punctuation.
func SameForm(token, text string) bool {
	if len(token) < 8 || len(token) != len(text) || strings.ContainsAny(text, " \t") {
		return false
	}
	for i := range len(token) {
		if a, b := wordByte(token[i]), wordByte(text[i]); a != b || !a && token[i] != text[i] {
			return false
		}
	}
	return true
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// FirstDifference returns in words where a text differs from the wanted one: "character 3 is U+00A0, not "x"".
func FirstDifference(want, got string) string {
	w, g := []rune(want), []rune(got)
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	switch {
	case i == len(w) && i == len(g):
		return ""
	case i == len(g):
		return fmt.Sprintf("it ends after character %d of %d", i, len(w))
	case i == len(w):
		return fmt.Sprintf("character %d is %s, and nothing is expected there", i+1, shown(g[i]))
	}
	return fmt.Sprintf("character %d is %s, not %s", i+1, shown(g[i]), shown(w[i]))
}

// shown returns a character in quotes, or its code point if it cannot be seen or distinguished.
func shown(r rune) string {
	if r < '!' || r > '~' {
		return fmt.Sprintf("U+%04X", r)
	}
	return `"` + string(r) + `"`
}
