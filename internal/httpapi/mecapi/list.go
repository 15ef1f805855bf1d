package mecapi

import (
	"fmt"
	"net/http"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/mec"
)

// tagAll returns the entity tag of all rules of an application.
func tagAll(list []mec.Rule) string { return `"` + mec.ETagOf(list) + `"` }

// ifMatchAll is ifMatch for all rules of an application. The empty list has a tag too.
func (c *call) ifMatchAll(list []mec.Rule) error {
	return c.matchTag(tagAll(list),
		"the rules have changed since If-Match was read; read them again and repeat the change")
}

// ruleMemory is the bytes of memory that a rule takes from the store to the JSON of a reply, with the longest names.
const ruleMemory = 4 << 10

// reserveRules waits for the memory of a reply with all rules of the application. A rule that is added meanwhile is not
// counted.
func (c *call) reserveRules() error {
	a, err := c.Service.App(c.app)
	if err != nil {
		return err
	}
	return httpapi.Reserve(c.r.Context(), int64(a.Rules)*ruleMemory)
}

// rulesReply returns a reply with all rules of an application and their tag.
func (c *call) rulesReply(list []mec.Rule) reply {
	return reply{status: http.StatusOK, body: c.wireAll(list), etag: tagAll(list)}
}

// warn logs the rules that are not served because a zone of the zones API has their name. The request id leads to the
// audit line of the request.
func (c *call) warn(list ...mec.Rule) {
	n, first := 0, ""
	for _, r := range list {
		z := c.Service.SilencedBy(r.Name)
		if z.IsZero() || r.State == mec.Inactive {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("rule %s for %s is not answered while zone %s is there", r.ID, r.Name, z)
		}
	}
	if n > 1 {
		first += fmt.Sprintf(", and %d more", n-1)
	}
	if n > 0 {
		c.Log.Warn("a zone silences what was asked for", "warning", first, "who", httpapi.CallerOf(c.r.Context()).Who,
			"request_id",
			httpapi.RequestID(c.r.Context()))
	}
}

// revoke revokes the tokens of an application. Call it before the deletion of the application's objects: with a valid
// token the application could create new ones meanwhile.
func (c *call) revoke(app string) (int, error) {
	if err := mec.CheckApp(app); err != nil {
		return 0, err
	}
	return c.Revoke(c.r.Context(), c.actor(), app)
}
