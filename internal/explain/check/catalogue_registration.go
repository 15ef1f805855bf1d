package check

import "github.com/nameplane/nameplane/internal/explain"

func registrationChecks() []Check {
	return []Check{
		{
			ID: "REG01", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: registered,
			Title: "The domain is registered",
			What:  "The registry does not know the domain, and the zone above it does not have it.",
			Why:   "A name that nobody has registered has no servers, no website and no mail. Anyone may register it.",
			How:   "The registry is asked by RDAP or WHOIS, and the servers of the zone above are asked for the name. Both must say no.",
			Fix:   "Compare the spelling letter by letter with the name that you own. If it is right, register the domain.",
			Refs:  []string{"RFC 9083 §5.3", "RFC 9082 §3.1.3"},
		},
		{
			ID: "REG02", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: notExpiring,
			Title: "The registration does not end within 30 days",
			What:  "The registration ends soon, or has ended.",
			Why:   "After that day the registrar switches the domain off: website and mail stop, and later anyone may register it.",
			How:   "The registry's and the registrar's date of expiry are read. The earlier one counts: it is what was paid for.",
			Fix:   "Renew the domain at your registrar, and turn automatic renewal on.",
			Refs:  []string{"RFC 9083 §4.5", "RFC 5731 §3.2.3"},
		},
		{
			ID: "REG03", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: notOnHold,
			Title: "The domain is not switched off at the registry",
			What:  "The registration has the status clientHold, serverHold or inactive.",
			Why:   "Such a domain is registered and yet not in the DNS. Nothing below it works, whatever its own servers say.",
			How:   "The statuses that the registry tells are read.",
			Fix:   "Ask your registrar why. Often a bill is open, or the holder's e-mail address was never confirmed.",
			Refs:  []string{"RFC 5731 §2.3", "RFC 8056 §2"},
		},
		{
			ID: "REG04", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: notDeleted,
			Title: "The domain is not being deleted",
			What:  "The registration has the status redemptionPeriod, pendingRestore or pendingDelete.",
			Why:   "The domain was deleted. It can be restored only for some weeks and at a higher price, and then anyone may register it.",
			How:   "The statuses that the registry tells are read.",
			Fix:   "Call your registrar today and have the domain restored.",
			Refs:  []string{"RFC 3915 §3.1"},
		},
		{
			ID: "REG05", Group: Registration, Severity: explain.Warning, Kinds: scan, judge: notMoving,
			Title: "No change of registrar is under way or fresh",
			What:  "The domain is on its way to another registrar, or came to this one a short while ago.",
			Why:   "Until that is done, changes of nameservers may be refused. If you did not ask for it, somebody is taking the domain.",
			How:   "The status pendingTransfer, the date of the last transfer, and the registrar of earlier looks are read.",
			Fix:   "If you asked for it, wait until it is done. If not, call your registrar now and object.",
			Refs:  []string{"RFC 5731 §3.2.4"},
		},
		{
			ID: "REG06", Group: Registration, Severity: explain.Notice, Kinds: scan, judge: locked,
			Title: "The domain is locked against transfer",
			What:  "Neither the registrar nor the registry has locked the domain against a move to another registrar.",
			Why:   "Without the lock, who gets hold of the transfer code can move the domain away.",
			How:   "The statuses that the registry tells are read.",
			Fix:   "Turn the transfer lock on at your registrar.",
			Refs:  []string{"RFC 5731 §2.3"},
		},
		{
			ID: "REG07", Group: Registration, Severity: explain.Warning, Kinds: scan, judge: registryNS,
			Title: "The registry and the zone above list the same nameservers",
			What:  "The nameservers in the registry's database are not those that the zone above hands out.",
			Why:   "Resolvers go by the zone above. What was set at the registrar is not in use yet.",
			How:   "The nameservers of the registration are compared with those of the referral from the servers of the zone above.",
			Fix:   "Wait an hour: the zone follows the database. If the difference stays, ask your registrar.",
			Refs:  []string{"RFC 9083 §5.3", "RFC 5731 §1.1"},
		},
		{
			ID: "REG08", Group: Registration, Severity: explain.Error, Kinds: scan, judge: registryDS,
			Title: "The registry and the zone above have the same DS records",
			What:  "The DS records in the registry's database are not those in the zone above.",
			Why:   "Validating resolvers go by the zone above. A DS that was removed or added at the registrar has not taken effect.",
			How:   "The DS data of the registration are compared with the DS records that the servers of the zone above have.",
			Fix:   "Wait an hour: the zone follows the database. If the difference stays, ask your registrar, and do not change keys before.",
			Refs:  []string{"RFC 9083 §5.3", "RFC 5910 §4"},
		},
		{
			ID: "REG09", Group: Registration, Severity: explain.Info, Kinds: scan, judge: registryKnown,
			Title: "The registry can be asked about the domain",
			What:  "Neither RDAP nor WHOIS gave an answer about the registration.",
			Why:   "Dates, status and registrar could not be checked. This says nothing about the domain.",
			How:   "RDAP is asked first, then WHOIS.",
			Fix:   "Look again later, or look the domain up at your registrar.",
			Refs:  []string{"RFC 9224", "RFC 3912"},
		},
	}
}
