package mecapi

import (
	"time"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// wireRule is the DnsRule of MEC 011. A rule without a TTL never expires, and is shown without the member ttl.
type wireRule struct {
	ID       string  `json:"dnsRuleId"`
	Domain   string  `json:"domainName"`
	AddrType string  `json:"ipAddressType"`
	Addr     string  `json:"ipAddress"`
	TTL      *uint32 `json:"ttl,omitempty"`
	State    string  `json:"state"`

	// The following members are not in MEC 011.
	LoadBalance bool       `json:"loadBalance,omitempty"`
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`
	SilencedBy  string     `json:"silencedBy,omitempty"`    // the zone that answers instead of the rule
	Grant       string     `json:"grantedDomain,omitempty"` // the domain in which the application may choose the name
}

func fromRule(r mec.Rule, extensions bool) wireRule {
	w := wireRule{ID: r.ID, Domain: r.Domain, AddrType: r.AddrType(), Addr: r.Addr.String(), TTL: r.TTL,
		State: string(r.State)}
	if extensions {
		w.LoadBalance = r.LoadBalance
		if !r.ExpiresAt.IsZero() {
			w.ExpiresAt = &r.ExpiresAt
		}
		if !r.Grant.IsZero() {
			w.Grant = r.Grant.String()
		}
	}
	return w
}

// extensions reports whether the API accepts and shows members that are not in ETSI's schema. The platform always has
// them.
func (c *call) extensions() bool { return c.name == "mm5" || c.EdgeGallery }

// wire returns a rule in the form of this API.
func (c *call) wire(r mec.Rule) wireRule {
	w := fromRule(r, c.extensions())
	if z := c.Service.SilencedBy(r.Name); c.extensions() && !z.IsZero() {
		w.SilencedBy = z.String()
	}
	return w
}

func (c *call) wireAll(list []mec.Rule) []wireRule {
	out := make([]wireRule, len(list))
	for i, r := range list {
		out[i] = c.wire(r)
	}
	return out
}

// ruleInput is a DnsRule in a request. Members that the client left out are nil.
type ruleInput struct {
	ID          *string `json:"dnsRuleId"`
	Domain      *string `json:"domainName"`
	AddrType    *string `json:"ipAddressType"`
	Addr        *string `json:"ipAddress"`
	TTL         *int64  `json:"ttl"`
	State       *string `json:"state"`
	LoadBalance *bool   `json:"loadBalance"`
	ExpiresAt   *string `json:"expiresAt"`
	Grant       *string `json:"grantedDomain"`
}

// onlyState reports whether the client sent the state and nothing else.
func (in ruleInput) onlyState() bool {
	return in == ruleInput{State: in.State} && in.State != nil
}

// rule parses the input as a whole rule.
func (in ruleInput) rule(special specialaddr.Table) (mec.Rule, error) {
	d := mec.Draft{ID: val(in.ID), Domain: val(in.Domain), AddrType: val(in.AddrType), Addr: val(in.Addr), TTL: in.TTL,
		State: val(in.State), LoadBalance: val(in.LoadBalance), Grant: val(in.Grant)}
	if in.ExpiresAt != nil {
		t, err := time.Parse(time.RFC3339, *in.ExpiresAt)
		if err != nil {
			return mec.Rule{}, &mec.FieldError{Field: "expiresAt", Msg: "must be a time such as 2030-01-31T12:00:00Z"}
		}
		d.ExpiresAt = t
	}
	return mec.ParseRule(d, special)
}

func val[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// link is the LinkType of MEC 011.
type link struct {
	Href string `json:"href"`
}

// subscription corresponds to AppTerminationNotificationSubscription of MEC 011. The members after the links are not in
// MEC 011.
type subscription struct {
	Type     string            `json:"subscriptionType"`
	Callback string            `json:"callbackReference"`
	App      string            `json:"appInstanceId"`
	Links    subscriptionLinks `json:"_links"`

	State string `json:"state"` // ACTIVE, or FAILED after too many failures
	// the last delivered event; at first the last one before the subscription
	Delivered uint64 `json:"lastSequence"`
	Missed    uint64 `json:"missed,omitempty"`    // events that were dropped before their delivery
	Failures  int    `json:"failures,omitempty"`  // failed attempts since the last success
	LastError string `json:"lastError,omitempty"` // the error of the newest failure
}

type subscriptionLinks struct {
	Self link `json:"self"`
}

// subscriptionInput is a subscription in a request.
type subscriptionInput struct {
	Type     *string `json:"subscriptionType"`
	Callback *string `json:"callbackReference"`
	App      *string `json:"appInstanceId"`
}

// linkList is the MecAppSuptApiSubscriptionLinkList of MEC 011. Version 2.1.1 names the type of a link
// subscriptionType, version 2.2.1 names it rel. The list has both, so that clients of both versions find it.
type linkList struct {
	Links struct {
		Self          link               `json:"self"`
		Subscriptions []subscriptionLink `json:"subscriptions"`
	} `json:"_links"`
}

type subscriptionLink struct {
	Href string `json:"href"`
	Type string `json:"subscriptionType"`
	Rel  string `json:"rel"`
}

// The type names of the subscription and the notification, which MEC 011 does not have.
const (
	subscriptionType = "DnsRuleChangeNotificationSubscription"
	notificationType = "DnsRuleChangeNotification"
)

// notification describes one change of one rule, for a callback or a stream.
type notification struct {
	Type     string             `json:"notificationType"`
	App      string             `json:"appInstanceId"`
	Change   string             `json:"changeType"` // CREATED, UPDATED, DELETED, EXPIRED
	Sequence uint64             `json:"sequence"`
	Time     timeStamp          `json:"timeStamp"`
	Rule     wireRule           `json:"dnsRule"` // the rule after the change, or before its deletion
	Links    *notificationLinks `json:"_links,omitempty"`
}

// timeStamp is the TimeStamp of MEC 011.
type timeStamp struct {
	Seconds     int64 `json:"seconds"`
	NanoSeconds int   `json:"nanoSeconds"`
}

type notificationLinks struct {
	Subscription link `json:"subscription"`
}

func fromEvent(e mec.Event, extensions bool) notification {
	return notification{Type: notificationType, App: e.Rule.App, Change: string(e.Kind), Sequence: e.Seq,
		Time: timeStamp{e.Time.Unix(), e.Time.Nanosecond()}, Rule: fromRule(e.Rule, extensions)}
}
