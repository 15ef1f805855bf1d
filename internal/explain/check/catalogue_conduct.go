package check

import "github.com/nameplane/nameplane/internal/explain"

var conductChecks = []Check{
	{
		ID: "SRV01", Group: Conduct, Severity: explain.Warning, Kinds: zones, judge: edns,
		Title: "Every nameserver handles EDNS as it should",
		What:  "A nameserver does not know EDNS, or does not reply to a version, option or flag that it does not know.",
		Why:   "Resolvers must guess and ask again. DNSSEC is impossible without EDNS.",
		How:   "Every address is asked with EDNS, with version 1, with an unknown option and with an unknown flag.",
		Fix:   "Update the software of that nameserver, or the firewall before it.",
		Refs:  []string{"RFC 6891 §6", "RFC 8906 §3.2"},
	},
	{
		ID: "SRV02", Group: Conduct, Severity: explain.Warning, Kinds: zones, judge: truncation.judge,
		Title: "Every nameserver keeps to the packet size that it is given",
		What:  "A nameserver sends larger replies than were asked for, or cuts them without saying so.",
		Why:   "Large packets come in fragments, and fragments are lost on many ways. The answer does not arrive.",
		How:   "Every address is asked with a small size, and the size of the reply and its TC flag are looked at.",
		Fix:   "Set the largest UDP size of that nameserver to 1232, or update its software.",
		Refs:  []string{"RFC 6891 §6.2.5", "RFC 9715 §3.1"},
	},
	{
		ID: "SRV03", Group: Conduct, Severity: explain.Notice, Kinds: zones, judge: echo.judge,
		Title: "Every nameserver returns names in the case in which they were asked",
		What:  "A nameserver changes capital and small letters in the question that it returns.",
		Why:   "Some resolvers mix the case to recognise forged replies. They must turn that protection off for this server, or refuse it.",
		How:   "Every address is asked with the name in mixed case.",
		Fix:   "Update the software of that nameserver.",
		Refs:  []string{"RFC 1035 §2.3.3", "RFC 4343 §4"},
	},
	{
		ID: "SRV04", Group: Conduct, Severity: explain.Error, Kinds: zones, judge: source.judge,
		Title: "Every nameserver replies from the address that was asked",
		What:  "A nameserver's replies come from another address than the question was sent to.",
		Why:   "Resolvers throw such replies away: to them the server is silent.",
		How:   "The address of each reply is compared with the one that was asked.",
		Fix:   "Bind the nameserver to its addresses one by one, or correct the address translation before it.",
		Refs:  []string{"RFC 2181 §4"},
	},
	{
		ID: "SRV05", Group: Conduct, Severity: explain.Error, Kinds: zones, judge: types.judge,
		Title: "Every nameserver replies to all record types",
		What:  "A nameserver does not reply to questions for types such as HTTPS or CAA.",
		Why:   "Browsers ask for HTTPS and wait. Certificate authorities must ask for CAA, and refuse the certificate without a reply.",
		How:   "Every address is asked for HTTPS, CAA and a type that nobody uses.",
		Fix:   "Update the software of that nameserver, or the firewall before it.",
		Refs:  []string{"RFC 8906 §3.1.2", "RFC 3597 §3", "RFC 8659 §3"},
	},
	{
		ID: "SRV06", Group: Conduct, Severity: explain.Info, Kinds: zones, judge: limits.judge,
		Title: "No nameserver limited our questions",
		What:  "A nameserver began to drop or cut its replies, as servers do that limit the rate of each client.",
		Why:   "That is its right. Some of what is missing in this report may be missing for this reason.",
		How:   "Replies that are cut although they are small, and losses that come only after many questions, are counted.",
		Fix:   "Nothing needs to be done. Look again later.",
		Refs:  []string{"RFC 8906 §1"},
	},
}

var vantageChecks = []Check{
	{
		ID: "VAN01", Group: Vantage, Severity: explain.Warning, Kinds: every, judge: notIntercepted,
		Title: "Questions from here reach the servers that they are sent to",
		What:  "Somebody on the way answers DNS questions in place of the servers that are asked.",
		Why:   "What is seen from here is not what the servers say. All that is asked by DNS is unknown then.",
		How:   "A question is sent to an address where no DNS server is. A reply shows that somebody else answers.",
		Fix:   "Look from another network, or turn the interception off (router, provider, security software).",
		Refs:  []string{"RFC 8906 §1"},
	},
	{
		ID: "VAN02", Group: Vantage, Severity: explain.Warning, Kinds: compared, judge: notFiltered,
		Title: "No resolver filters the name",
		What:  "A resolver gives no answer, or a false one, on purpose.",
		Why:   "Its users cannot reach the name, however long they wait. It has nothing to do with old answers.",
		How:   "The resolver says so itself (extended errors 4 and 15 to 17), answers with an address that leads nowhere, or denies the name by a zone that it is not in. Of one that is known to filter it is also told if it has an answer that nobody else has; that may be an older one.",
		Fix:   "If the name is listed wrongly, ask the operator to take it off the list.",
		Refs:  []string{"RFC 8914 §4.16"},
	},
	{
		ID: "VAN03", Group: Vantage, Severity: explain.Info, Kinds: every, judge: clock,
		Title: "The clock of this machine is right",
		What:  "The clock here differs from that of others by more than five seconds.",
		Why:   "The times in this report are wrong by that much. Signatures may seem expired that are not.",
		How:   "The clock is compared with the dates that servers send.",
		Fix:   "Turn time synchronisation (NTP) on.",
		Refs:  []string{"RFC 4035 §5.3.1"},
	},
	{
		ID: "VAN04", Group: Vantage, Severity: explain.Info, Kinds: every, judge: enough,
		Title: "Enough answers came in for a verdict",
		What:  "Too few servers or resolvers answered, or the budget was used up.",
		Why:   "What could not be seen is unknown, and is not counted as wrong.",
		How:   "Answers that can be used are counted.",
		Fix:   "Look again, from a network with a better connection or with a larger budget.",
	},
}
