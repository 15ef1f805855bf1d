package check

import "github.com/nameplane/nameplane/internal/explain"

// delegationChecks are the checks of the delegation: what the parent zone says about the zone, and where that leads.
var delegationChecks = []Check{
	{
		ID: "DEL01", Group: Delegation, Severity: explain.Critical, Kinds: every, judge: delegated,
		Title: "The parent zone delegates the domain",
		What:  "The servers of the parent zone have no nameservers for the domain.",
		Why:   "Resolvers do not learn which servers to query, so no name of the domain can be resolved.",
		How:   "All servers of the parent zone are queried for the domain, starting at the root and without a cache.",
		Fix:   "Set the nameservers of the domain at your registrar.",
		Refs:  []string{"RFC 1034 §4.2.1"},
	},
	{
		ID: "DEL02", Group: Delegation, Severity: explain.Warning, Kinds: zones, judge: twoServers,
		Title: "The zone has at least two nameservers at different addresses",
		What: "The parent zone or the zone itself lists only one nameserver, or all nameservers of a list have the same " +
			"address.",
		Why: "When that one machine or its network fails, the whole domain stops working.",
		How: "The nameservers in the parent zone and those in the zone itself are counted, each with their addresses: " +
			"resolvers use one list first and the other later.",
		Fix:  "Add a second nameserver in another network, at your DNS host and at your registrar.",
		Refs: []string{"RFC 1034 §4.1", "RFC 2182 §3.1"},
	},
	{
		ID: "DEL03", Group: Delegation, Severity: explain.Critical, Kinds: zones, judge: sameNS,
		Title: "The parent zone and the zone itself list the same nameservers",
		What:  "The nameservers that the parent zone hands out are not those that the zone lists itself.",
		Why: "Resolvers may use either list. If the lists share no server, some users get the answers of one set of " +
			"servers, and some those of the other.",
		How:  "The referral of the parent zone is compared with the NS records that the zone's own servers return.",
		Fix:  "Decide which list is right, and enter it both at your registrar and as NS records in the zone.",
		Refs: []string{"RFC 1034 §4.2.2", "RFC 2181 §5.4.1"},
	},
	{
		ID: "DEL08", Group: Delegation, Severity: explain.Critical, Kinds: zones, judge: glued,
		Title: "Nameservers inside the zone come with their addresses",
		What:  "A nameserver has a name inside the zone, and the parent zone does not hand out its address.",
		Why:   "To find the address, a resolver would have to query the very server whose address is missing.",
		How:   "The referrals of the parent zone are searched for address records.",
		Fix:   "Add the address of the nameserver (host record, glue) at your registrar.",
		Refs:  []string{"RFC 1034 §4.2.1", "RFC 9471 §3"},
	},
	{
		ID: "DEL09", Group: Delegation, Severity: explain.Error, Kinds: zones, judge: sameGlue,
		Title: "The parent zone hands out the right addresses of the nameservers",
		What: "The address of a nameserver that the parent zone hands out is not the one that the nameserver's own zone " +
			"has.",
		Why: "Resolvers start with the address from the parent zone. If it is old, they query a machine that is no longer " +
			"yours.",
		How:  "The addresses in the referral are compared with the authority's address records for the same name.",
		Fix:  "Correct the address of the nameserver (host record, glue) at your registrar.",
		Refs: []string{"RFC 1034 §4.2.2", "RFC 2181 §5.4.1"},
	},
	{
		ID: "DEL10", Group: Delegation, Severity: explain.Error, Kinds: zones, judge: nsNotAlias,
		Title: "No nameserver's name is an alias",
		What:  "The name of a nameserver is a CNAME.",
		Why:   "That is forbidden, and many resolvers do not follow it: to them the server does not exist.",
		How:   "The name of each nameserver is resolved from the root.",
		Fix:   "List the target of the CNAME instead, or give the nameserver's name its own address records.",
		Refs:  []string{"RFC 2181 §10.3"},
	},
	{
		ID: "DEL11", Group: Delegation, Severity: explain.Critical, Kinds: zones, judge: nsResolve,
		Title: "The name of every nameserver leads to an address",
		What: "The name of a nameserver does not exist, has no address, is an address itself, or has the zone's name " +
			"appended to it.",
		Why:  "A nameserver that nobody can find does not answer.",
		How:  "The name of each nameserver is resolved from the root.",
		Fix:  "Correct the name. If the zone's name was appended, a dot is missing at the end: write it with the dot.",
		Refs: []string{"RFC 1912 §2.8", "RFC 1035 §5.1"},
	},
	{
		ID: "DEL12", Group: Delegation, Severity: explain.Critical, Kinds: zones, judge: nsRegistered,
		Title: "The domains of the nameservers are registered, and do not expire soon",
		What:  "A nameserver's name is in a domain that is not registered, or whose registration ends soon.",
		Why:   "Anyone who registers that domain controls your nameserver, and decides where your visitors and your mail go.",
		How:   "The registry of each nameserver's domain is queried.",
		Fix:   "Remove the nameserver at your registrar and in the zone today.",
		Refs:  []string{"RFC 9083 §5.3"},
	},
	{
		ID: "DEL13", Group: Delegation, Severity: explain.Critical, Kinds: zones, judge: noCircle,
		Title: "The nameservers can be found without asking themselves",
		What:  "To find the address of a nameserver, a resolver must query that same nameserver, through other domains.",
		Why:   "The lookup has no starting point. The domain works only where an old address is still cached.",
		How:   "The addresses of all nameservers are resolved from the root, and each dependency is recorded.",
		Fix: "Add glue for one of them at the registrar, or add a nameserver whose name is in a domain that does not " +
			"depend on these.",
		Refs: []string{"RFC 1034 §4.2.1", "RFC 9471 §2.3"},
	},
	{
		ID: "DEL14", Group: Delegation, Severity: explain.Error, Kinds: zones, judge: nsPublic,
		Title: "All nameservers have public addresses",
		What: "A nameserver has an address that cannot be reached from the internet: private, loopback, link-local, " +
			"reserved, or of a tunnel that no longer exists (6to4, Teredo).",
		Why:  "Resolvers outside your own network never reach it.",
		How:  "The addresses are compared with the registry of special-purpose addresses.",
		Fix:  "Give the nameserver its public address, in its own zone and as glue at the registrar.",
		Refs: []string{"RFC 6890"},
	},
	{
		ID: "DEL18", Group: Delegation, Severity: explain.Notice, Kinds: zones, judge: smallReferral,
		Title: "The referral to the zone fits into one packet",
		What:  "The referral of the parent zone to the zone is larger than 1232 bytes.",
		Why:   "It is truncated or fragmented, and resolvers must query again over TCP. Every first visit takes longer.",
		How:   "The size of the largest referral is measured, with DNSSEC data in it.",
		Fix:   "Use fewer nameservers, or nameservers in one domain, and only the DS records that are needed.",
		Refs:  []string{"RFC 9471 §3", "RFC 9715 §3.1"},
	},
	{
		ID: "DEL19", Group: Delegation, Severity: explain.Error, Kinds: zones, judge: parentsAgree,
		Title: "All servers of the parent zone say the same about the zone",
		What: "Servers of the parent zone hand out different nameservers or DS records, deny the zone that others " +
			"delegate, answer for it themselves, or do not answer.",
		Why: "Which of them a resolver asks depends on chance, so some lookups fail. This is normal for some minutes " +
			"after a change.",
		How: "Every server of the parent zone is queried, and of the zones above it. Referrals, DS records, denials and " +
			"failures are compared. Different nameservers and servers that do not answer are a warning.",
		Fix:  "Wait an hour. If the difference stays, ask your registrar: one of the registry's servers is not updated.",
		Refs: []string{"RFC 1034 §4.2.2"},
	},
	{
		ID: "DEL20", Group: Delegation, Severity: explain.Error, Kinds: zones, judge: bothFamilies,
		Title: "The nameservers can be reached over IPv4 and IPv6",
		What:  "No nameserver, or only one, has an IPv4 address; or none has an IPv6 address.",
		Why:   "Resolvers that have only the other protocol cannot resolve any name of the zone.",
		How: "The addresses of all nameservers are counted. No IPv4 address is an error, one is a warning, and no IPv6 " +
			"address is a notice.",
		Fix:  "Give the nameservers addresses of both protocols, in their own zone and as glue at the registrar.",
		Refs: []string{"RFC 3901 §4"},
	},
}

// serverChecks are the checks of the zone's own servers.
var serverChecks = []Check{
	{
		ID: "DEL04", Group: Delegation, Severity: explain.Critical, Kinds: every, judge: authoritative,
		Title: "Every nameserver knows the zone",
		What: "A server that is listed for the zone replies, but is not authoritative for it: it refuses, fails, " +
			"answers from a cache, or sends nothing that a resolver can use. It is lame.",
		Why: "Resolvers that query it must try another server, which takes time. If all are lame, the domain does not work.",
		How: "Every address of every nameserver is queried for the SOA record of the zone. A server that does not reply " +
			"is not called lame.",
		Fix:  "Set up the zone on that server, or remove the server at your registrar and in the zone.",
		Refs: []string{"RFC 1912 §2.8", "RFC 9499 §7"},
	},
	{
		ID: "DEL05", Group: Delegation, Severity: explain.Critical, Kinds: every, judge: reachable,
		Title: "Every nameserver replies",
		What:  "An address of a nameserver does not reply to queries over UDP, or loses some of them.",
		Why: "Resolvers wait for it before they try another one: seconds of delay. If none replies, the domain does not " +
			"work.",
		How: "Every address is queried up to three times, and the losses are counted. An address family that this machine " +
			"cannot use is skipped.",
		Fix: "Check that the server runs and that firewalls allow UDP port 53. Remove addresses that are not in use from " +
			"the delegation.",
		Refs: []string{"RFC 2182 §3"},
	},
	{
		ID: "DEL06", Group: Delegation, Severity: explain.Warning, Kinds: zones, judge: tcp,
		Title: "Every nameserver replies over TCP",
		What:  "A nameserver replies over UDP, but not over TCP.",
		Why:   "Answers that do not fit into one packet, such as signed ones or long TXT records, cannot be fetched from it.",
		How:   "Every address is queried for the SOA record over TCP once.",
		Fix:   "Allow TCP port 53 to the nameserver.",
		Refs:  []string{"RFC 7766 §5", "RFC 9210 §3"},
	},
	{
		ID: "DEL07", Group: Delegation, Severity: explain.Warning, Kinds: zones, judge: notUpward,
		Title: "No nameserver refers resolvers upwards",
		What:  "A nameserver does not know the zone, and refers to the root or a parent zone.",
		Why:   "Resolvers that follow the reply would loop. The server is as useless for the zone as one that refuses.",
		How:   "Every address is queried for the SOA record of the zone.",
		Fix:   "Set up the zone on that server, or remove the server. Such replies come from old configurations.",
		Refs:  []string{"RFC 1912 §2.8", "RFC 9499 §7"},
	},
	{
		ID: "DEL15", Group: Delegation, Severity: explain.Notice, Kinds: scan, judge: noRecursion.judge,
		Title: "No nameserver is an open resolver",
		What:  "A nameserver of the zone also resolves names of other zones for anyone.",
		Why:   "It can be used for attacks on others, and forged data in its cache may get into answers for your zone.",
		How:   "Every address is queried, with the RD flag set, for a name that it is not authoritative for.",
		Fix:   "Turn recursion off on the nameserver, or allow it for your own networks only.",
		Refs:  []string{"RFC 5358 §4"},
	},
	{
		ID: "DEL16", Group: Delegation, Severity: explain.Notice, Kinds: scan, judge: noTransfer.judge,
		Title: "No nameserver allows zone transfers to anyone",
		What:  "A nameserver sends the whole zone (AXFR) to any client.",
		Why:   "Anyone can read the complete list of your names, including those that you have not published.",
		How:   "A transfer (AXFR) is started at every address, and stopped after its first record.",
		Fix:   "Allow transfers to your secondaries only, by address or by key.",
		Refs:  []string{"RFC 5936 §5"},
	},
	{
		ID: "DEL17", Group: Delegation, Severity: explain.Notice, Kinds: zones, judge: fast,
		Title: "The nameservers reply within 200 ms, and are not all in one network",
		What: "A nameserver takes long to reply, as seen from here; or all of them are in one network (a /24, with IPv6 a " +
			"/48).",
		Why: "Every first visit waits this long before your site starts to load. A user who cannot reach that one network " +
			"cannot resolve any name of the zone.",
		How: "The median reply time of each address is measured, and the addresses are compared. This is only the view " +
			"from here: a server may be faster or slower elsewhere, and one vantage point cannot see whether an address is " +
			"anycast.",
		Fix:  "Use a DNS host with servers near your users (anycast), or drop the slow server.",
		Refs: []string{"RFC 2182 §3.1"},
	},
}
