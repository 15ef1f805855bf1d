package mecapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

const rulesOf = "/mep/config/{app}/dns_rules"

// configRoutes is nameplane's own form of Mm5. Unlike EdgeGallery's it can list applications, replace all rules at
// once, and stream events.
var configRoutes = []Route{
	{http.MethodGet, "/mep/config", "List applications with their DNS rules", (*call).listApps, 0, 0},
	{http.MethodGet, "/mep/config/events", "Watch the DNS rules of all applications", (*call).watchAll, 0, 0},
	{http.MethodDelete, "/mep/config/events", "", (*call).terminate, 0, 0}, // "events" can be the id of an application
	{http.MethodDelete, "/mep/config/{app}", "Terminate an application", (*call).terminate, 0, 0},
	{http.MethodGet, rulesOf, "List the DNS rules of an application, for the platform", (*call).listRules, 0, 0},
	{http.MethodPost, rulesOf, "Create a DNS rule", (*call).createRule, mm5Body, 0},
	{http.MethodPut, rulesOf, "Replace or switch all DNS rules of an application", (*call).putRules, ruleBody, 0},
	{http.MethodGet, rulesOf + "/{rule}", "Show a DNS rule, for the platform", (*call).showRule, 0, 0},
	{http.MethodPut, rulesOf + "/{rule}", "Change a DNS rule, for the platform", (*call).putRule, mm5Body, 0},
	{http.MethodDelete, rulesOf + "/{rule}", "Delete a DNS rule", (*call).deleteRule, 0, 0},
}

// Bounds of a page: the number of applications, and of their rules, because one application may have a thousand.
const (
	pageApps  = 25
	pageRules = 5000
)

// appList is a page of applications.
type appList struct {
	Apps  []appEntry `json:"applications"`
	Links struct {
		Self string `json:"self"`
		Next string `json:"next,omitempty"`
	} `json:"links"`
}

type appEntry struct {
	ID            string     `json:"appInstanceId"`
	Name          string     `json:"appName,omitempty"`
	Subscriptions int        `json:"subscriptions"`
	Rules         []wireRule `json:"dnsRules"`
}

// listApps lists applications in the order of their ids, beginning after the marker.
func (c *call) listApps() (reply, error) {
	q := c.r.URL.Query()
	limit := pageApps
	if given := q.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return reply{}, &mec.FieldError{Field: "limit", Msg: "must be a number from 1 up to " + strconv.Itoa(pageApps)}
		}
		limit = min(n, pageApps)
	}
	apps, err := c.Service.Apps(q.Get("marker"), limit+1)
	if err != nil {
		return reply{}, err
	}
	if err := c.reservePage(apps); err != nil {
		return reply{}, err
	}
	out := appList{Apps: []appEntry{}}
	out.Links.Self = c.url(c.r.URL.RequestURI())
	total := 0
	for _, a := range apps {
		if len(out.Apps) == limit || total > pageRules {
			next := url.Values{"limit": {strconv.Itoa(limit)}, "marker": {out.Apps[len(out.Apps)-1].ID}}
			out.Links.Next = c.url("/mep/config?" + next.Encode())
			break
		}
		list, err := c.Service.Rules(a.ID)
		if err != nil {
			return reply{}, err
		}
		total += len(list)
		out.Apps = append(out.Apps, appEntry{a.ID, a.Name, a.Subscriptions, c.wireAll(list)})
	}
	return ok(out), nil
}

// reservePage waits for the memory of a page of applications. A page ends after the application that exceeds pageRules.
func (c *call) reservePage(apps []mec.App) error {
	total := 0
	for _, a := range apps {
		if total > pageRules {
			break
		}
		total += a.Rules
	}
	return httpapi.Reserve(c.r.Context(), int64(total)*ruleMemory)
}

// terminate deletes everything that belongs to an application, and revokes its tokens.
func (c *call) terminate() (reply, error) {
	app := cmp.Or(c.app, "events")
	revoked, err := c.revoke(app)
	if err != nil {
		return reply{}, err
	}
	gone, err := c.Service.Terminate(c.r.Context(), c.actor(), app)
	if err == nil && gone == (mec.Removed{}) && revoked == 0 {
		err = &mechttp.Fault{Status: http.StatusNotFound,
			Detail: fmt.Sprintf("application %.140q has no rules, tasks, subscriptions or tokens", app)}
	}
	return reply{status: http.StatusNoContent}, err
}

func (c *call) createRule() (reply, error) {
	var in ruleInput
	if err := c.decode(&in); err != nil {
		return reply{}, err
	}
	if in.ID == nil {
		in.ID = new(uuid.NewString())
	}
	r, err := in.rule(c.Service.Special())
	if err != nil {
		return reply{}, err
	}
	r.App = c.app
	if r, err = c.Service.Create(c.r.Context(), c.actor(), r, nil); err != nil {
		return reply{}, err
	}
	c.warn(r)
	rep := c.ruleReply(http.StatusCreated, r)
	rep.location = c.url(c.r.URL.EscapedPath() + "/" + url.PathEscape(r.ID))
	return rep, nil
}

// putRules replaces all rules of an application by a list, or sets the state of all its rules. Either is one commit.
func (c *call) putRules() (reply, error) {
	b, err := c.read()
	if err != nil {
		return reply{}, err
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		return c.replaceRules(b)
	}
	var in ruleInput
	if err := mechttp.Decode(b, &in); err != nil {
		return reply{}, err
	}
	if !in.onlyState() {
		return reply{}, &mec.FieldError{Field: mechttp.Whole,
			Msg: `must be a list of rules, or {"state": ...} for all existing rules`}
	}
	state, err := mec.ParseState(*in.State)
	if err != nil {
		return reply{}, err
	}
	if err := c.reserveRules(); err != nil {
		return reply{}, err
	}
	list, err := c.Service.SetStates(c.r.Context(), c.actor(), c.app, state, c.ifMatchAll)
	c.warn(list...)
	return c.rulesReply(list), err
}

func (c *call) replaceRules(b []byte) (reply, error) {
	var items []json.RawMessage
	if err := mechttp.Decode(b, &items); err != nil {
		return reply{}, err
	}
	list, err := parseRules("", items, c.Service.Special())
	if err != nil {
		return reply{}, err
	}
	list, err = c.Service.Replace(c.r.Context(), c.actor(), c.app, list, c.ifMatchAll)
	c.warn(list...)
	return c.rulesReply(list), err
}

// parseRules parses a list of rules. An error names the rule that it is about.
func parseRules(list string, items []json.RawMessage, special specialaddr.Table) ([]mec.Rule, error) {
	out := make([]mec.Rule, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		var in ruleInput
		err := mechttp.Decode(item, &in)
		if err == nil {
			out[i], err = in.rule(special)
		}
		if err == nil && seen[out[i].ID] {
			err = &mec.FieldError{Field: "dnsRuleId", Msg: fmt.Sprintf("%q occurs twice", out[i].ID)}
		}
		if err != nil {
			return nil, mechttp.Within(fmt.Sprintf("%s[%d]", list, i), err)
		}
		seen[out[i].ID] = true
	}
	return out, nil
}

// putRule changes the state of a rule if the body has only the state, and the whole rule otherwise.
func (c *call) putRule() (reply, error) {
	return c.update(func(old mec.Rule, in ruleInput) (change, error) {
		if in.onlyState() {
			return stateOnly(old, in)
		}
		return c.whole(old, in)
	})
}

func (c *call) deleteRule() (reply, error) {
	_, err := c.Service.Delete(c.r.Context(), c.actor(), c.app, c.ruleID(), c.ifMatch)
	return reply{status: http.StatusNoContent}, err
}
