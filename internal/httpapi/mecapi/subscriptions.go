package mecapi

import (
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
)

// self returns the URL of the application's subscriptions, with the base path of the request.
func (c *call) self() string {
	path := c.r.URL.EscapedPath()
	if id := c.r.PathValue("subscription"); id != "" {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return c.url(path)
}

func (c *call) wireSubscription(s mec.Subscription) subscription {
	return subscription{Type: subscriptionType, Callback: s.Callback, App: s.App,
		Links: subscriptionLinks{link{c.self() + "/" + s.ID}},
		State: string(s.State), Delivered: s.Delivered, Missed: s.Missed, Failures: s.Failures, LastError: s.LastError}
}

func (c *call) listSubscriptions() (reply, error) {
	list, err := c.Service.Subscriptions(c.app)
	if err != nil {
		return reply{}, err
	}
	var out linkList
	out.Links.Self.Href = c.self()
	out.Links.Subscriptions = []subscriptionLink{}
	for _, s := range list {
		out.Links.Subscriptions = append(out.Links.Subscriptions,
			subscriptionLink{c.self() + "/" + s.ID, subscriptionType, subscriptionType})
	}
	return ok(out), nil
}

func (c *call) subscribe() (reply, error) {
	var in subscriptionInput
	if err := c.decode(&in); err != nil {
		return reply{}, err
	}
	switch {
	case val(in.Type) != subscriptionType:
		return reply{}, &mec.FieldError{Field: "subscriptionType", Msg: "must be " + subscriptionType}
	case in.App != nil && *in.App != c.app:
		return reply{}, &mec.FieldError{Field: "appInstanceId", Msg: "is not the one of the path"}
	case c.Callbacks == nil:
		return reply{}, &mechttp.Fault{Status: http.StatusForbidden, Detail: "notifications are not configured"}
	}
	if err := c.Callbacks.Check(val(in.Callback)); err != nil {
		return reply{}, err
	}
	s, err := c.Service.Subscribe(c.r.Context(), c.actor(), c.app, val(in.Callback))
	if err != nil {
		return reply{}, err
	}
	w := c.wireSubscription(s)
	return reply{status: http.StatusCreated, body: w, location: w.Links.Self.Href}, nil
}

func (c *call) showSubscription() (reply, error) {
	s, err := c.Service.Subscription(c.app, c.r.PathValue("subscription"))
	return ok(c.wireSubscription(s)), err
}

func (c *call) unsubscribe() (reply, error) {
	err := c.Service.Unsubscribe(c.r.Context(), c.actor(), c.app, c.r.PathValue("subscription"))
	return reply{status: http.StatusNoContent}, err
}
