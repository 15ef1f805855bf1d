package mecapi

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// listRules returns the rules of an application. An unknown application has an empty array, like one without rules.
func (c *call) listRules() (reply, error) {
	if err := c.reserveRules(); err != nil {
		return reply{}, err
	}
	list, err := c.Service.Rules(c.app)
	return c.ifNoneMatch(c.rulesReply(list)), err
}

func (c *call) showRule() (reply, error) {
	r, err := c.Service.Rule(c.app, c.ruleID())
	return c.ifNoneMatch(c.ruleReply(http.StatusOK, r)), err
}

// putOwnRule changes a rule for its application, as far as the platform allows. By default only the state may change:
// MEC 011 defines it as the attribute that a PUT updates. If the rule has a grant, the application may change all of
// it, as long as the name stays in the granted domain.
func (c *call) putOwnRule() (reply, error) {
	if wait, ok := c.limits.take(c.app, time.Now()); !ok {
		return reply{}, &mechttp.Fault{Status: http.StatusTooManyRequests, Wait: wait, Detail: fmt.Sprintf(
			"this application has made more than %d changes in a short time", changeBurst)}
	}
	if c.EdgeGallery {
		return c.update(stateOnly)
	}
	return c.update(func(old mec.Rule, in ruleInput) (change, error) {
		if in.ID == nil {
			return nil, &mec.FieldError{Field: "dnsRuleId", Msg: "is missing"}
		}
		if _, err := mec.ParseState(val(in.State)); err != nil {
			return nil, err
		}
		whole, err := c.whole(old, in) // also without a grant: MEC 011 requires every member in a PUT
		if err != nil {
			return nil, err
		}
		state, err := stateOnly(old, in)
		return func(old mec.Rule) (mec.Rule, error) {
			if old.Grant.IsZero() {
				r, err := state(old)
				return r, notGranted(err)
			}
			return granted(whole, old)
		}, err
	})
}

// notGranted returns the error for an application that changes more than the state without a grant: 403 in MEC 011.
func notGranted(err error) error {
	if err == nil {
		return nil
	}
	return &mechttp.Fault{Status: http.StatusForbidden, Detail: err.Error() +
		"; the platform can let the application change the rule with grantedDomain on Mm5"}
}

// granted changes a rule with a grant. The members that the application cannot see keep their values.
func granted(whole change, old mec.Rule) (mec.Rule, error) {
	r, err := whole(old)
	if err == nil && !r.Name.IsIn(old.Grant) {
		err = &mechttp.Fault{Status: http.StatusForbidden, Detail: fmt.Sprintf(
			"domainName: %s is not in %s, the domain that the platform granted", r.Name, old.Grant)}
	}
	r.LoadBalance, r.ExpiresAt, r.Grant = old.LoadBalance, old.ExpiresAt, old.Grant
	return r, err
}

// change is a parsed body. It is called inside the commit with the current rule and returns the next one.
type change func(mec.Rule) (mec.Rule, error)

// update changes the rule of the path. It calls parse with the rule before the commit. The errors have an order: first
// 404, then 412 for If-Match, then errors in the body.
func (c *call) update(parse func(mec.Rule, ruleInput) (change, error)) (reply, error) {
	var in ruleInput
	var next change
	bad := c.decode(&in)
	if !c.extensions() { // members that are not in the schema are ignored
		in.LoadBalance, in.ExpiresAt, in.Grant = nil, nil, nil
	}
	id := c.ruleID()
	old, err := c.Service.Rule(c.app, id)
	switch {
	case err != nil:
		return reply{}, err
	case bad != nil:
	case in.ID != nil && *in.ID != id:
		bad = &mec.FieldError{Field: "dnsRuleId", Msg: "is not the one of the path"}
	default:
		next, bad = parse(old, in)
	}
	r, err := c.Service.Update(c.r.Context(), c.actor(), c.app, id, func(old mec.Rule) (mec.Rule, error) {
		if err := c.ifMatch(old); err != nil {
			return old, err
		}
		if bad != nil {
			return old, bad
		}
		return next(old)
	})
	if err != nil {
		return reply{}, err
	}
	c.warn(r)
	return c.ruleReply(http.StatusOK, r), nil
}

// ruleID returns the id of the rule in the path. On the path of event streams it is "events": a rule may have this id.
func (c *call) ruleID() string {
	return cmp.Or(c.r.PathValue("rule"), "events")
}

// whole returns a change that replaces the whole rule.
func (c *call) whole(old mec.Rule, in ruleInput) (change, error) {
	in.ID = &old.ID
	r, err := in.rule(c.Service.Special())
	return func(mec.Rule) (mec.Rule, error) { return r, nil }, err
}

// stateOnly returns a change of the state. Other members that the client sends must have their current values.
func stateOnly(old mec.Rule, in ruleInput) (change, error) {
	state, err := mec.ParseState(val(in.State))
	if err != nil {
		return nil, err
	}
	// The address must be the stored one, which was checked: a rule can be switched off after a change of the prefixes.
	said, err := filled(old, in).rule(specialaddr.Table{})
	if err != nil {
		return nil, err
	}
	return func(old mec.Rule) (mec.Rule, error) {
		for field, differs := range map[string]bool{
			"domainName":    in.Domain != nil && said.Name != old.Name,
			"ipAddressType": in.AddrType != nil && said.AddrType() != old.AddrType(),
			"ipAddress":     in.Addr != nil && said.Addr != old.Addr,
			"ttl":           in.TTL != nil && (old.TTL == nil || *said.TTL != *old.TTL),

			"loadBalance": in.LoadBalance != nil && said.LoadBalance != old.LoadBalance,
			"expiresAt":   in.ExpiresAt != nil && !said.ExpiresAt.Equal(old.ExpiresAt),

			"grantedDomain": in.Grant != nil && said.Grant != old.Grant,
		} {
			if differs {
				return old, &mec.FieldError{Field: field, Msg: "cannot be changed here, only the state can"}
			}
		}
		old.State = state
		return old, nil
	}, nil
}

// filled returns the input with the values of the rule for the members that the client left out.
func filled(old mec.Rule, in ruleInput) ruleInput {
	family, addr := old.AddrType(), old.Addr.String()
	in.ID = &old.ID
	if in.Domain == nil {
		in.Domain = &old.Domain
	}
	if in.AddrType == nil {
		in.AddrType = &family
	}
	if in.Addr == nil {
		in.Addr = &addr
	}
	return in
}
