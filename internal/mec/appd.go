package mec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/strictjson"
)

// MaxAppD is the largest descriptor in bytes: far larger than real ones, and small enough to parse in memory.
const MaxAppD = 1 << 20

// appD holds the parts of a descriptor that this package uses.
type appD struct {
	ID       scalar     `json:"appDId" yaml:"appDId"`
	Name     scalar     `json:"appName" yaml:"appName"`
	Rules    []appDRule `json:"appDNSRule" yaml:"appDNSRule"`
	AltRules []appDRule `json:"-" yaml:"appDnsRule"` // EdgeGallery's spelling; encoding/json ignores case
}

type appDRule struct {
	ID       scalar `json:"dnsRuleId" yaml:"dnsRuleId"`
	Domain   scalar `json:"domainName" yaml:"domainName"`
	AddrType scalar `json:"ipAddressType" yaml:"ipAddressType"`
	Addr     scalar `json:"ipAddress" yaml:"ipAddress"`
	TTL      scalar `json:"ttl" yaml:"ttl"`
	State    scalar `json:"state" yaml:"state"`
	Grant    scalar `json:"grantedDomain" yaml:"grantedDomain"`
}

// scalar is a value of any type. It lets ParseAppD report a value of a wrong type with the name of its field.
type scalar struct {
	text   string
	given  bool
	number bool
	wrong  bool // the value is a list, a map or a boolean
}

func (s *scalar) UnmarshalJSON(b []byte) error {
	switch c := b[0]; {
	case c == '"':
		s.given = true
		return json.Unmarshal(b, &s.text)
	case c == '-' || c >= '0' && c <= '9':
		s.text, s.given, s.number = string(b), true, true
	default:
		s.wrong = c != 'n' // null is absent
	}
	return nil
}

func (s *scalar) UnmarshalYAML(n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!bool" {
		s.wrong = true
		return nil
	}
	if n.Tag != "!!null" {
		s.text, s.given, s.number = n.Value, true, n.Tag == "!!int"
	}
	return nil
}

// ParseAppD reads the DNS rules of an application descriptor (ETSI MEC 010-2, appDNSRule) in JSON or YAML. It ignores
// members that it does not know. Errors in a rule are FieldErrors with a field such as "appDNSRule[2].ipAddress".
//
// Only the command line reads descriptors. It does not know the NAT64 prefixes of the operator: the server checks the
// addresses again with them.
func ParseAppD(b []byte) ([]Rule, error) {
	if len(b) > MaxAppD {
		return nil, fmt.Errorf("descriptor is larger than %d bytes", MaxAppD)
	}
	var d appD
	var err error
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) == 0 {
		return nil, errors.New("descriptor is empty")
	} else if trimmed[0] == '{' {
		err = strictjson.Unmarshal(b, &d)
	} else {
		err = yaml.Unmarshal(b, &d)
	}
	if err != nil {
		return nil, fmt.Errorf("descriptor is neither JSON nor YAML with a list appDNSRule: %w", err)
	}
	if d.Rules != nil && d.AltRules != nil {
		return nil, errors.New("descriptor has both appDNSRule and appDnsRule: keep one of them")
	}
	if d.Rules == nil {
		d.Rules = d.AltRules
	}
	if d.Rules == nil && !d.ID.given && !d.Name.given { // a wrong file would delete all rules of the application
		return nil, errors.New("descriptor has none of appDId, appName and appDNSRule")
	}
	rules := make([]Rule, len(d.Rules))
	seen := map[string]bool{}
	for i, w := range d.Rules {
		rules[i], err = w.rule()
		if err == nil && seen[rules[i].ID] {
			err = fieldErr("dnsRuleId", "%q occurs twice", rules[i].ID)
		}
		if err != nil {
			return nil, In(fmt.Sprintf("appDNSRule[%d]", i), err)
		}
		seen[rules[i].ID] = true
	}
	return rules, nil
}

func (w appDRule) rule() (Rule, error) {
	for _, f := range []struct {
		name string
		scalar
	}{{"dnsRuleId", w.ID}, {"domainName", w.Domain}, {"ipAddressType", w.AddrType}, {"ipAddress", w.Addr}, {"ttl", w.TTL},
		{"state", w.State}, {"grantedDomain", w.Grant}} {
		if f.wrong {
			return Rule{}, fieldErr(f.name, "is neither text nor a number")
		}
	}
	d := Draft{ID: w.ID.text, Domain: w.Domain.text, AddrType: w.AddrType.text, Addr: w.Addr.text, State: w.State.text,
		Grant: w.Grant.text}
	if w.TTL.given {
		ttl, err := strconv.ParseInt(w.TTL.text, 10, 64)
		if err != nil || !w.TTL.number {
			return Rule{}, fieldErr("ttl", "%.40q is not a whole number of seconds", w.TTL.text)
		}
		d.TTL = &ttl
	}
	return ParseRule(d, specialaddr.Table{})
}
