package check

import "github.com/nameplane/nameplane/internal/explain"

// mailChecks are the checks of the records of mail and of CAA at the zone.
var mailChecks = []Check{
	{
		ID: "MAI01", Group: Mail, Severity: explain.Error, Kinds: scan, judge: nullMX,
		Title: "A null MX record has no other MX records beside it",
		What:  "The domain has a null MX record (\".\"), which says that it receives no mail, and other MX records.",
		Why:   "Some senders deliver the mail, others reject it at once.",
		How:   "The zone's own servers are queried for MX.",
		Fix:   "Delete the record with the target \".\", or, if the domain must not receive mail, delete the others.",
		Refs:  []string{"RFC 7505 §3"},
	},
	{
		ID: "MAI02", Group: Mail, Severity: explain.Error, Kinds: scan, judge: exchangers,
		Title: "Every mail exchanger is a host name with an address",
		What:  "The target of an MX record is an address, an alias, or a name without an address.",
		Why: "Mail cannot be delivered to such a target. Some senders follow an alias, but others reject it, or send the " +
			"mail in a loop.",
		How: "The targets of the MX records are looked up for A and AAAA at their authoritative servers. No mail server is " +
			"contacted.",
		Fix:  "Set the MX record to a host name that has A or AAAA records of its own.",
		Refs: []string{"RFC 2181 §10.3", "RFC 5321 §5.1", "RFC 1035 §3.3.9"},
	},
	{
		ID: "MAI03", Group: Mail, Severity: explain.Error, Kinds: scan, judge: oneSPF,
		Title: "The domain has at most one SPF record",
		What:  "Several TXT records at the domain are SPF records.",
		Why:   "Receivers return a permanent error for SPF, as if there were none. DMARC may then reject the mail.",
		How:   "The zone's own servers are queried for TXT, and the records that begin with v=spf1 are counted.",
		Fix:   "Join the records to one: one \"v=spf1\", then all mechanisms, then one \"all\".",
		Refs:  []string{"RFC 7208 §4.5"},
	},
	{
		ID: "MAI04", Group: Mail, Severity: explain.Error, Kinds: scan, judge: spfSyntax,
		Title: "The SPF record is valid",
		What:  "The SPF record has a mistake, or it uses the mechanism \"ptr\", which is deprecated.",
		Why:   "One wrong word makes the whole record void. The mechanism \"ptr\" is slow, and some receivers ignore it.",
		How:   "The TXT record at the domain that begins with v=spf1 is parsed. Texts that only resemble one are reported.",
		Fix:   "Correct the record. Words are separated by one space: \"v=spf1 mx include:_spf.example.net -all\".",
		Refs:  []string{"RFC 7208 §4.6.1", "RFC 7208 §5.5", "RFC 7208 §12"},
	},
	{
		ID: "MAI05", Group: Mail, Severity: explain.Error, Kinds: scan, judge: spfLookups,
		Title: "The SPF record stays within the limits of lookups",
		What: "The SPF record needs more than ten lookups together with those that it includes, more than two of its " +
			"names have no records, or an included record is missing or not valid.",
		Why: "Receivers stop at the limit and return a permanent error. Whether mail passes then depends on the order of " +
			"the mechanisms.",
		How: "Included records are looked up until the limit is exceeded. The mechanisms include, a, mx, ptr and exists " +
			"and the modifier redirect count one each.",
		Fix:  "Remove senders that you no longer use, and replace a and mx by ip4 and ip6 with the addresses.",
		Refs: []string{"RFC 7208 §4.6.4", "RFC 7208 §5.2"},
	},
	{
		ID: "MAI06", Group: Mail, Severity: explain.Warning, Kinds: scan, judge: spfOpen,
		Title: "The SPF record does not allow every sender",
		What:  "The SPF record contains \"+all\", \"all\" without a sign, or a network that is the whole internet.",
		Why:   "Anyone may send mail in the name of the domain, and it passes SPF and DMARC.",
		How:   "The SPF record is parsed.",
		Fix:   "End the record with \"-all\" or \"~all\".",
		Refs:  []string{"RFC 7208 §5.1"},
	},
	{
		ID: "MAI07", Group: Mail, Severity: explain.Notice, Kinds: scan, judge: policies,
		Title: "A domain that receives mail has SPF and DMARC records",
		What:  "The domain has MX records, but no SPF record or no DMARC record.",
		Why:   "Others can send mail in its name, and large receivers do not trust its mail.",
		How:   "TXT is queried at the domain and at _dmarc below it. Domains without MX records are left out.",
		Fix: "Create a TXT record with SPF at the domain, and one at _dmarc. \"v=DMARC1; p=none; rua=mailto:...\" is a " +
			"safe start.",
		Refs: []string{"RFC 7208 §3", "RFC 7489 §6.1"},
	},
	{
		ID: "MAI08", Group: Mail, Severity: explain.Error, Kinds: scan, judge: dmarc.judge,
		Title: "The DMARC record is valid",
		What:  "There are several DMARC records, or the record has a mistake.",
		Why:   "Receivers ignore such records: there is no policy, and no reports arrive.",
		How:   "TXT is queried at _dmarc below the domain, and the record is parsed.",
		Fix:   "Keep one record. It begins with \"v=DMARC1;\", has p=none, p=quarantine or p=reject, and mailto: addresses.",
		Refs:  []string{"RFC 7489 §6.3", "RFC 7489 §6.6.3"},
	},
	{
		ID: "MAI09", Group: Mail, Severity: explain.Error, Kinds: scan, judge: dkim,
		Title: "Every DKIM selector has a key that receivers accept",
		What: "A selector given by --dkim has no key record, several, or one that is not valid; its key is revoked, or " +
			"shorter than receivers accept.",
		Why: "Signatures with that selector cannot be verified.",
		How: "TXT is queried at SELECTOR._domainkey below the domain, and the key is decoded. Without --dkim nothing is " +
			"queried, as selectors cannot be listed.",
		Fix:  "Publish the record that your mail provider shows, in full. Use RSA keys of 2048 bits, or Ed25519.",
		Refs: []string{"RFC 6376 §3.6.1", "RFC 8301 §3.2", "RFC 8463 §4"},
	},
	{
		ID: "MAI10", Group: Mail, Severity: explain.Warning, Kinds: scan, judge: sts.judge,
		Title: "The MTA-STS record is valid",
		What:  "There are several MTA-STS records, or the record has a mistake.",
		Why:   "Senders behave as if there were no policy, and may send mail without TLS.",
		How:   "TXT is queried at _mta-sts below the domain, and the record is parsed. The policy itself is not fetched.",
		Fix:   "Keep one record, like \"v=STSv1; id=20260101T000000\", and change the id with each change of the policy.",
		Refs:  []string{"RFC 8461 §3.1"},
	},
	{
		ID: "MAI11", Group: Mail, Severity: explain.Warning, Kinds: scan, judge: tlsReports.judge,
		Title: "The record for TLS reports is valid",
		What:  "There are several records for TLS reports, or the record has a mistake.",
		Why:   "Senders ignore it, and no reports about failed TLS connections arrive.",
		How:   "TXT is queried at _smtp._tls below the domain, and the record is parsed.",
		Fix:   "Keep one record, like \"v=TLSRPTv1; rua=mailto:tls@example.com\".",
		Refs:  []string{"RFC 8460 §3"},
	},
	{
		ID: "MAI12", Group: Mail, Severity: explain.Error, Kinds: scan, judge: caa,
		Title: "The CAA records are valid",
		What:  "A CAA record has an unknown property, a value that is not valid, or contradicts another one.",
		Why:   "Certificate authorities refuse certificates, or ignore the record, so that any authority may issue them.",
		How:   "The zone's own servers are queried for CAA, and the records are parsed.",
		Fix: "Use the properties issue, issuewild and iodef: 0 issue \"ca.example.net\". The value \";\" forbids all " +
			"authorities and stands alone.",
		Refs: []string{"RFC 8659 §4"},
	},
}
