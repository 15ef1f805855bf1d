package mecapi

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
)

// listRules answers with an empty array for an application without rules, known or not.
func (c *call) listRules() (reply, error) {
	list, err := c.Service.Rules(c.app)
	return c.unlessHeld(c.toldAll(list)), err
}

func (c *call) showRule() (reply, error) {
	r, err := c.Service.Rule(c.app, c.ruleID())
	return c.unlessHeld(c.told(http.StatusOK, r)), err
}

// putOwnRule changes a rule as the platform lets the application. MEC 011 has the state as the attribute that a PUT may
// update: the default. A rule with a grant is the application's to change, as long as its name stays in that domain.
func (c *call) putOwnRule() (reply, error) {
	if wait, ok := c.pace.take(c.app, time.Now()); !ok {
		return reply{}, &mechttp.Fault{Status: http.StatusTooManyRequests, Wait: wait, Detail: fmt.Sprintf(
			"this application has made more than %d changes in a short time", paceBurst)}
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
		whole, err := whole(old, in) // in any case: every member that MEC 011 requires must be there
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

// notGranted returns the error for an application that has changed more than the state, which MEC 011 answers with 403.
func notGranted(err error) error {
	if err == nil {
		return nil
	}
	return &mechttp.Fault{Status: http.StatusForbidden, Detail: err.Error() +
		"; the platform can let the application change the rule with grantedDomain on Mm5"}
}

// granted changes a rule that the platform granted. The members that the application cannot see stay as they are.
func granted(whole change, old mec.Rule) (mec.Rule, error) {
	r, err := whole(old)
	if err == nil && !r.Name.IsIn(old.Grant) {
		err = &mechttp.Fault{Status: http.StatusForbidden, Detail: fmt.Sprintf(
			"domainName: %s is not in %s, the domain that the platform granted", r.Name, old.Grant)}
	}
	r.LoadBalance, r.ExpiresAt, r.Grant = old.LoadBalance, old.ExpiresAt, old.Grant
	return r, err
}

// change is a parsed body: it makes the next rule of the one that is there, inside the commit.
type change func(mec.Rule) (mec.Rule, error)

// update changes the rule of the path. parse is given the rule before the commit. A mistake in the body is reported last:
// a rule that does not exist, and one that is not the one of If-Match, come first.
func (c *call) update(parse func(mec.Rule, ruleInput) (change, error)) (reply, error) {
	var in ruleInput
	var next change
	bad := c.decode(&in)
	if !c.extensions() { // members that are not known here are passed over
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
	return c.told(http.StatusOK, r), nil
}

// ruleID is the rule of the path. A rule may have the name of the path of events.
func (c *call) ruleID() string {
	return cmp.Or(c.r.PathValue("rule"), "events")
}

// whole makes a rule what the client says, all of it.
func whole(old mec.Rule, in ruleInput) (change, error) {
	in.ID = &old.ID
	r, err := in.rule()
	return func(mec.Rule) (mec.Rule, error) { return r, nil }, err
}

// stateOnly gives a rule another state. Other members that a client sends must have the value that the rule has.
func stateOnly(old mec.Rule, in ruleInput) (change, error) {
	state, err := mec.ParseState(val(in.State))
	if err != nil {
		return nil, err
	}
	said, err := filled(old, in).rule()
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

// filled is what a client wrote, with the rest as it is.
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
