package registry

import (
	"fmt"
	"strings"
	"unicode"
)

// Status is one status of a domain.
type Status struct {
	Code   string `json:"code"` // the EPP code in camel case; other statuses as the registry writes them
	Text   string `json:"text"` // an explanation
	Urgent bool   `json:"urgent,omitempty"`
}

// statusTexts explains the statuses of RFC 5731 (domains), RFC 3915 (grace periods) and RFC 9083 §10.2.2 (RDAP). The
// keys are EPP codes where RFC 8056 has one.
var statusTexts = map[string]string{
	// RFC 5731
	"ok":       "The registration is in good order; nothing is pending or locked.",
	"inactive": "No name servers are set, so the domain is not in the DNS.",
	"clientHold": "The registrar switched the domain off: it is not in the DNS. " +
		"Often an unpaid bill or an e-mail address that was never confirmed.",
	"clientDeleteProhibited": "The registrar locked the domain against deletion.",
	"clientRenewProhibited": "The registrar refuses to renew the domain, " +
		"which usually means that it is disputed or given up.",
	"clientTransferProhibited": "The registrar locked the domain against a move to another registrar, " +
		"as it should be most of the time.",
	"clientUpdateProhibited": "The registrar locked the domain: " +
		"name servers and contacts cannot be changed until it is unlocked there.",
	"serverHold":               "The registry switched the domain off: it is not in the DNS. The registrar knows why.",
	"serverDeleteProhibited":   "The registry locked the domain against deletion.",
	"serverRenewProhibited":    "The registry refuses to renew the domain, usually because of a dispute.",
	"serverTransferProhibited": "The registry locked the domain against a move to another registrar.",
	"serverUpdateProhibited": "The registry locked the domain: " +
		"changes need the registry's own procedure, through the registrar.",
	"pendingCreate": "The registration was requested and is not complete yet.",
	"pendingDelete": "The domain is about to be deleted and can no longer be restored; " +
		"then anyone may register it.",
	"pendingRenew": "The renewal was requested and is not complete yet.",
	"pendingTransfer": "The domain is being transferred to another registrar; " +
		"changes may be refused until the transfer is complete.",
	"pendingUpdate": "A change was requested and is not complete yet.",
	"linked":        "Other objects of the registry refer to this one.",
	// RFC 3915
	"addPeriod": "The domain is new; the registrar may still give it back and be refunded.",
	"autoRenewPeriod": "The registry renewed the domain automatically after it expired; " +
		"the registrar may still delete it, so pay for the renewal now.",
	"renewPeriod":    "The domain was renewed a short while ago.",
	"transferPeriod": "The domain moved to its registrar a short while ago.",
	"redemptionPeriod": "The domain was deleted; its holder can still restore it through the registrar, " +
		"at a higher price and only for some weeks.",
	"pendingRestore": "The domain was deleted and is being restored; " +
		"the registrar still has to confirm it to the registry.",
	// RFC 9083, statuses that are not in EPP
	"validated":          "The registry checked the data of this registration.",
	"renewProhibited":    "The domain is locked against renewal.",
	"updateProhibited":   "The domain is locked: name servers and contacts cannot be changed.",
	"transferProhibited": "The domain is locked against a move to another registrar.",
	"deleteProhibited":   "The domain is locked against deletion.",
	"proxy":              "The contacts are those of a proxy service, not those of the holder.",
	"private":            "The contacts are not shown to the public.",
	"removed":            "Some data is left out of the reply.",
	"obscured":           "Some data was altered in the reply, to protect the holder.",
	"locked":             "The domain is locked; changes need the registrar's or the registry's procedure.",
	"administrative":     "The registry uses the domain itself.",
	"reserved":           "The registry reserves the name.",
}

// urgent are the statuses in which a domain does not work or will stop working.
var urgent = map[string]bool{
	"clientHold": true, "serverHold": true, "inactive": true, "redemptionPeriod": true, "pendingDelete": true,
	"pendingTransfer": true, "autoRenewPeriod": true, "pendingRestore": true,
}

// statusSynonyms maps other words for statuses, in lower case without spaces, to EPP codes. They are those of RFC
// 8056, and the words of country-code registries for normal domains and for holds.
var statusSynonyms = map[string]string{
	"active": "ok", "associated": "linked",
	"connect": "ok", "connected": "ok", "published": "ok", "registered": "ok", "registereduntilexpirydate": "ok",
	"delegated": "ok", "notavailable": "ok", "notdelegated": "inactive", "verified": "validated",
	"onhold": "serverHold", "hold": "serverHold", "suspended": "serverHold", "todelete": "pendingDelete",
	"redemption": "redemptionPeriod", "quarantine": "redemptionPeriod", "inquarantine": "redemptionPeriod",
}

// statusCodes maps the letters of a status to its EPP code. So "client transfer prohibited" (RDAP),
// "clientTransferProhibited" (EPP), "CLIENT-TRANSFER-PROHIBITED" and "client_transfer_prohibited" are the same.
var statusCodes = func() map[string]string {
	codes := map[string]string{}
	for code := range statusTexts {
		codes[strings.ToLower(code)] = code
	}
	for word, code := range statusSynonyms {
		codes[word] = code
	}
	return codes
}()

// StatusOf returns the status for a registry's word: of EPP, of RDAP, or of a WHOIS server, which may add a link to
// an explanation.
func StatusOf(word string) Status {
	word = clean(word)
	if i := strings.Index(word, "http"); i > 0 {
		word = strings.TrimRight(word[:i], " (")
	}
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, word)
	code, known := statusCodes[letters]
	if !known {
		code = word
	}
	return Status{Code: code, Text: StatusText(code), Urgent: urgent[code]}
}

// StatusText explains a status code in one sentence.
func StatusText(code string) string {
	if text, known := statusTexts[code]; known {
		return text
	}
	return fmt.Sprintf("The registry uses its own status %q.", code)
}
