package check

import "github.com/nameplane/nameplane/internal/explain"

// conductChecks are the checks of how servers handle unusual queries (RFC 8906).
var conductChecks = []Check{
	{
		ID: "SRV01", Group: Conduct, Severity: explain.Warning, Kinds: zones, judge: edns,
		Title: "Every nameserver handles EDNS correctly",
		What:  "A nameserver does not support EDNS, or does not reply to an unknown version, option or flag.",
		Why:   "Resolvers must guess and query again. DNSSEC is impossible without EDNS.",
		How:   "Every address is queried with EDNS, with version 1, with an unknown option and with an unknown flag.",
		Fix:   "Update the software of that nameserver, or the firewall in front of it.",
		Refs:  []string{"RFC 6891 §6", "RFC 8906 §3.2"},
	},
	{
		ID: "SRV02", Group: Conduct, Severity: explain.Warning, Kinds: zones, judge: truncation.judge,
		Title: "Every nameserver respects the UDP size of the query",
		What:  "A nameserver sends larger replies than the query allows, or truncates them without the TC flag.",
		Why:   "Large packets are fragmented, and many networks drop fragments. The answer does not arrive.",
		How:   "Every address is queried with a small UDP size, and the size and TC flag of the reply are checked.",
		Fix:   "Set the largest UDP size of that nameserver to 1232, or update its software.",
		Refs:  []string{"RFC 6891 §6.2.5", "RFC 9715 §3.1"},
	},
	{
		ID: "SRV03", Group: Conduct, Severity: explain.Notice, Kinds: zones, judge: echo.judge,
		Title: "Every nameserver preserves the case of the queried name",
		What:  "A nameserver changes upper and lower case in the question that it returns.",
		Why: "Some resolvers use mixed case to detect forged replies. They must turn that protection off for this " +
			"server, or reject it.",
		How:  "Every address is queried with the name in mixed case.",
		Fix:  "Update the software of that nameserver.",
		Refs: []string{"RFC 1035 §2.3.3", "RFC 4343 §4"},
	},
	{
		ID: "SRV04", Group: Conduct, Severity: explain.Error, Kinds: zones, judge: source.judge,
		Title: "Every nameserver replies from the address that was queried",
		What:  "A nameserver's replies come from another address than the one that was queried.",
		Why:   "Resolvers drop such replies: for them, the server is silent.",
		How:   "The source address of each reply is compared with the address that was queried.",
		Fix:   "Bind the nameserver to each of its addresses, or correct the address translation (NAT) in front of it.",
		Refs:  []string{"RFC 2181 §4"},
	},
	{
		ID: "SRV05", Group: Conduct, Severity: explain.Error, Kinds: zones, judge: types.judge,
		Title: "Every nameserver replies to all record types",
		What:  "A nameserver does not reply to queries for types such as HTTPS or CAA.",
		Why: "Browsers query HTTPS and wait. Certificate authorities must query CAA, and refuse the certificate without " +
			"a reply.",
		How:  "Every address is queried for HTTPS, CAA and an unassigned type.",
		Fix:  "Update the software of that nameserver, or the firewall in front of it.",
		Refs: []string{"RFC 8906 §3.1.2", "RFC 3597 §3", "RFC 8659 §3"},
	},
	{
		ID: "SRV06", Group: Conduct, Severity: explain.Info, Kinds: zones, judge: limits.judge,
		Title: "No nameserver limited the rate of its replies",
		What:  "A nameserver started to drop or truncate its replies, as servers with response rate limiting do.",
		Why:   "This is allowed. Some facts may be missing in this report for this reason.",
		How:   "Truncated small replies, and losses that start only after many queries, are counted.",
		Fix:   "Nothing needs to be done. Scan again later.",
		Refs:  []string{"RFC 8906 §1"},
	},
	{
		ID: "SRV07", Group: Conduct, Severity: explain.Critical, Kinds: every, judge: everyType,
		Title: "Every nameserver answers for every type",
		What:  "A nameserver refuses, fails or is silent for some types or names of the zone, and answers for others.",
		Why: "Resolvers that ask this server must try another one. If no server answers for a type, lookups of that type " +
			"fail; without DNSKEY, validating resolvers reject the zone.",
		How: "The replies of each server are compared by type. A truncated reply counts as an answer if it is complete " +
			"over TCP. It is critical if no server answers for a usual type, or for DNSKEY if the parent zone has a DS.",
		Fix:  "Update the software of that nameserver, or the firewall in front of it.",
		Refs: []string{"RFC 8906 §3.1.1", "RFC 1034 §4.3.2"},
	},
}

// vantageChecks are the checks of the network that the queries come from. They say how far the other results can be
// trusted.
var vantageChecks = []Check{
	{
		ID: "VAN01", Group: Vantage, Severity: explain.Warning, Kinds: every, judge: notIntercepted,
		Title: "Queries from here reach the servers that they are sent to",
		What:  "A device on the network path answers DNS queries instead of the servers.",
		Why:   "The replies that arrive here are not those of the servers. Every check that uses DNS is then unknown.",
		How:   "A query is sent to an address without a DNS server. A reply shows that something else answers.",
		Fix:   "Scan from another network, or turn the interception off (router, provider, security software).",
		Refs:  []string{"RFC 8906 §1"},
	},
	{
		ID: "VAN02", Group: Vantage, Severity: explain.Warning, Kinds: compared, judge: notFiltered,
		Title: "No resolver filters the name",
		What:  "A resolver gives no answer, or a false one, on purpose.",
		Why:   "Its users cannot reach the name, however long they wait. This is unrelated to cached answers.",
		How: "The resolver says so itself (extended errors 4 and 15 to 17), answers with an unspecified or loopback " +
			"address, or denies the name with the SOA record of another zone. A resolver that is known to filter is also " +
			"reported if it has an answer that no other resolver has; that may be an older answer.",
		Fix:  "If the name is on the blocklist by mistake, ask the operator to remove it.",
		Refs: []string{"RFC 8914 §4.16"},
	},
	{
		ID: "VAN03", Group: Vantage, Severity: explain.Info, Kinds: every, judge: clock,
		Title: "The clock of this machine is right",
		What:  "The clock of this machine differs from the clocks of the servers by more than five seconds.",
		Why:   "The times in this report are wrong by that much. Valid signatures may seem to have expired.",
		How:   "The clock is compared with the dates that servers send.",
		Fix:   "Turn time synchronisation (NTP) on.",
		Refs:  []string{"RFC 4035 §5.3.1"},
	},
	{
		ID: "VAN04", Group: Vantage, Severity: explain.Info, Kinds: every, judge: enough,
		Title: "Enough answers arrived for a verdict",
		What:  "Too few servers or resolvers answered, or the query budget was used up.",
		Why:   "Missing results are unknown, and do not count as failures.",
		How:   "The usable answers are counted.",
		Fix:   "Scan again from a network with a better connection, or with a larger budget.",
	},
}
