package check

import "github.com/nameplane/nameplane/internal/explain"

// registrationChecks are the checks of the registration, as the registry shows it by RDAP or WHOIS.
var registrationChecks = []Check{
	{
		ID: "REG01", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: registered,
		Title: "The domain is registered",
		What:  "The registry does not know the domain, and the parent zone does not have it.",
		Why:   "A domain that is not registered has no servers, no website and no mail. Anyone may register it.",
		How: "The registry is queried by RDAP or WHOIS, and the servers of the parent zone by DNS. Both must deny the " +
			"domain.",
		Fix:  "Compare the spelling letter by letter with the name that you own. If it is right, register the domain.",
		Refs: []string{"RFC 9083 §5.3", "RFC 9082 §3.1.3"},
	},
	{
		ID: "REG02", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: notExpiring,
		Title: "The registration does not end within 30 days",
		What:  "The registration ends soon, or has ended.",
		Why:   "After that day, the registrar switches the domain off: website and mail stop. Later, anyone may register it.",
		How: "The expiry dates of the registry and the registrar are read. The earlier one counts, because the domain is " +
			"paid until then.",
		Fix:  "Renew the domain at your registrar, and turn automatic renewal on.",
		Refs: []string{"RFC 9083 §4.5", "RFC 5731 §3.2.3"},
	},
	{
		ID: "REG03", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: notOnHold,
		Title: "The domain is not switched off at the registry",
		What:  "The registration has the status clientHold, serverHold or inactive.",
		Why:   "Such a domain is registered, but not in the DNS. Nothing below it works, whatever its own servers say.",
		How:   "The statuses that the registry publishes are read.",
		Fix: "Ask your registrar for the reason. Often a bill is not paid, or the holder's e-mail address was never " +
			"confirmed.",
		Refs: []string{"RFC 5731 §2.3", "RFC 8056 §2"},
	},
	{
		ID: "REG04", Group: Registration, Severity: explain.Critical, Kinds: scan, judge: notDeleted,
		Title: "The domain is not being deleted",
		What:  "The registration has the status redemptionPeriod, pendingRestore or pendingDelete.",
		Why: "The domain was deleted. It can be restored only for some weeks and at a higher price. After that, anyone " +
			"may register it.",
		How:  "The statuses that the registry publishes are read.",
		Fix:  "Call your registrar today and have the domain restored.",
		Refs: []string{"RFC 3915 §3.1"},
	},
	{
		ID: "REG05", Group: Registration, Severity: explain.Warning, Kinds: scan, judge: notMoving,
		Title: "No change of registrar is in progress or recent",
		What:  "The domain is being transferred to another registrar, or was transferred recently.",
		Why: "Until the transfer is complete, changes of nameservers may be refused. If you did not request the " +
			"transfer, someone may be stealing the domain.",
		How:  "The status pendingTransfer, the date of the last transfer, and the registrar at earlier scans are compared.",
		Fix:  "If you requested it, wait until it is complete. If not, call your registrar now and object.",
		Refs: []string{"RFC 5731 §3.2.4"},
	},
	{
		ID: "REG06", Group: Registration, Severity: explain.Notice, Kinds: scan, judge: locked,
		Title: "The domain is locked against transfer",
		What:  "Neither the registrar nor the registry has locked the domain against a transfer to another registrar.",
		Why:   "Without the lock, anyone who gets the transfer code can transfer the domain.",
		How:   "The statuses that the registry publishes are read.",
		Fix:   "Turn the transfer lock on at your registrar.",
		Refs:  []string{"RFC 5731 §2.3"},
	},
	{
		ID: "REG07", Group: Registration, Severity: explain.Warning, Kinds: scan, judge: registryNS,
		Title: "The registry and the parent zone list the same nameservers",
		What:  "The nameservers in the registry's database are not those that the parent zone hands out.",
		Why:   "Resolvers use the parent zone. The nameservers that were set at the registrar are not in use yet.",
		How:   "The nameservers of the registration are compared with those in the referral of the parent zone.",
		Fix:   "Wait an hour: the zone follows the database. If the difference stays, ask your registrar.",
		Refs:  []string{"RFC 9083 §5.3", "RFC 5731 §1.1"},
	},
	{
		ID: "REG08", Group: Registration, Severity: explain.Error, Kinds: scan, judge: registryDS,
		Title: "The registry and the parent zone have the same DS records",
		What:  "The DS records in the registry's database are not those in the parent zone.",
		Why: "Validating resolvers use the parent zone. A DS that was removed or added at the registrar has not taken " +
			"effect.",
		How: "The DS data of the registration are compared with the DS records at the servers of the parent zone.",
		Fix: "Wait an hour: the zone follows the database. If the difference stays, ask your registrar. Do not change " +
			"keys until then.",
		Refs: []string{"RFC 9083 §5.3", "RFC 5910 §4"},
	},
	{
		ID: "REG09", Group: Registration, Severity: explain.Info, Kinds: scan, judge: registryKnown,
		Title: "The registry gives data about the domain",
		What:  "Neither RDAP nor WHOIS gave an answer about the registration.",
		Why:   "Dates, status and registrar could not be checked. This says nothing about the domain.",
		How:   "RDAP is queried first, then WHOIS.",
		Fix:   "Scan again later, or check the domain at your registrar.",
		Refs:  []string{"RFC 9224", "RFC 3912"},
	},
}
