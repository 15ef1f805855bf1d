package check

import "github.com/nameplane/nameplane/internal/explain"

// nameChecks are the checks of the name and its chain of aliases.
var nameChecks = []Check{
	{
		ID: "NAM01", Group: Name, Severity: explain.Critical, Kinds: reported, judge: nameExists,
		Title: "The name exists",
		What:  "The zone's own servers say that the name does not exist.",
		Why:   "No resolver can find it, whatever its cache says.",
		How: "All servers of the zone are queried, starting at the root and without a cache. Resolvers are not queried " +
			"for such a name: that would make them cache that it does not exist.",
		Fix: "Create the record at your DNS host. Check whether it was created under another name, such as one that " +
			"contains the domain twice.",
		Refs: []string{"RFC 1034 §4.3.2", "RFC 2308 §2.1"},
	},
	{
		ID: "NAM02", Group: Name, Severity: explain.Critical, Kinds: asked, judge: typeExists,
		Title: "The name has records of the type",
		What:  "The name exists, but has no records of the queried type.",
		Why: "Programs that need that type fail. The severity is only error if the name has records of another queried " +
			"type: browsers without IPv6 cannot use a name with only AAAA records, but others can. For types that most names " +
			"do not have (CAA, DS, HTTPS, SVCB, TLSA) it is notice.",
		How:  "All servers of the zone are queried for each type.",
		Fix:  "Add a record of that type at your DNS host.",
		Refs: []string{"RFC 2308 §2.2"},
	},
	{
		ID: "NAM03", Group: Name, Severity: explain.Critical, Kinds: every, judge: aliasAlone,
		Title: "No name has a CNAME and other records",
		What:  "There is a CNAME at the apex of a zone, or at a name that also has other records.",
		Why: "A CNAME replaces everything at its name: whether resolvers find mail, nameserver and verification records " +
			"depends on chance.",
		How: "The apex and the name are queried for several types, and the answers are compared.",
		Fix: "At the apex, use ALIAS (also called CNAME flattening), or A and AAAA records. Elsewhere, remove the CNAME " +
			"or the other records.",
		Refs: []string{"RFC 1034 §3.6.2", "RFC 2181 §10.1"},
	},
	{
		ID: "NAM04", Group: Name, Severity: explain.Error, Kinds: names, judge: chainLength,
		Title: "The chain of aliases is short",
		What:  "The name reaches its addresses through more than four aliases.",
		Why: "Each alias costs time and can break on its own. Resolvers give up after about eleven aliases, some after " +
			"eight.",
		How:  "The aliases are followed one by one, each at the servers of its own zone.",
		Fix:  "Point the name at the end of the chain, or closer to it.",
		Refs: []string{"RFC 1034 §3.6.2"},
	},
	{
		ID: "NAM05", Group: Name, Severity: explain.Critical, Kinds: every, judge: noLoop,
		Title: "The aliases do not form a loop",
		What:  "A CNAME points back to an earlier name of the chain.",
		Why:   "There is no address at the end. The name does not work anywhere.",
		How:   "The aliases are followed one by one.",
		Fix:   "Change one of the CNAME records to point to a name with addresses.",
		Refs:  []string{"RFC 1034 §3.6.2"},
	},
	{
		ID: "NAM06", Group: Name, Severity: explain.Critical, Kinds: reported, judge: notDangling,
		Title: "The aliases lead to a name that exists",
		What:  "The last name that the aliases lead to does not exist.",
		Why:   "The name does not work. If others can claim the target, they can take over the name.",
		How:   "The aliases are followed one by one, each at the servers of its own zone.",
		Fix:   "Correct the target of the alias, or delete the alias if the service is no longer used.",
		Refs:  []string{"RFC 1034 §3.6.2", "RFC 2308 §2.1"},
	},
	{
		ID: "NAM08", Group: Name, Severity: explain.Critical, Kinds: names, judge: targetRegistered,
		Title: "The domains that the aliases lead to are registered",
		What:  "An alias leads to a name in a domain that is not registered.",
		Why:   "Anyone who registers that domain can answer for your name.",
		How:   "The registry of each domain in the chain is queried.",
		Fix:   "Delete the alias, or correct its target.",
		Refs:  []string{"RFC 9083 §5.3"},
	},
	{
		ID: "NAM09", Group: Name, Severity: explain.Notice, Kinds: names, judge: notWildcard,
		Title: "The answer does not come from a wildcard",
		What:  "A random name beside this one has the same answer: it comes from a wildcard record.",
		Why:   "You may see the wildcard instead of the record that you created.",
		How:   "A random name at the same level is queried at the zone's own servers.",
		Fix:   "If the name needs its own record, create it. Otherwise nothing is wrong.",
		Refs:  []string{"RFC 4592 §3.3"},
	},
	{
		ID: "NAM10", Group: Name, Severity: explain.Warning, Kinds: names, judge: entExists,
		Title: "Empty non-terminal names exist",
		What:  "A nameserver says that a name does not exist, although there are names below it.",
		Why:   "Resolvers that query label by label (QNAME minimisation) stop there, and do not find the names below.",
		How:   "The name is queried label by label and as a whole, and the results are compared.",
		Fix: "Update or replace the software of that nameserver: it must answer NOERROR for a name without records that " +
			"has names below it.",
		Refs: []string{"RFC 8020 §2", "RFC 9156 §2.3", "RFC 4592 §2.2.2"},
	},
}

// answerChecks are the checks of the content of the records.
var answerChecks = []Check{
	{
		ID: "NAM11", Group: Name, Severity: explain.Error, Kinds: every, judge: sameAnswers,
		Title: "All nameservers give the same answer",
		What:  "The zone's own servers give different answers.",
		Why: "Users get one answer or the other by chance. Waiting does not help: this is not propagation. It is only a " +
			"warning if servers with the same serial have different addresses: then no server is behind. Each computes its " +
			"own answer, because it resolves an ALIAS (ANAME) itself or selects a location near the user.",
		How: "Every server is queried more than once, and for its serial. Answers that rotate or depend on the client " +
			"network do not count.",
		Fix:  "Bring all servers to the same version of the zone; SOA03 shows which are behind.",
		Refs: []string{"RFC 1034 §4.3.5"},
	},
	{
		ID: "NAM12", Group: Name, Severity: explain.Info, Kinds: names, judge: sameEverywhere,
		Title: "The answer is the same for all client networks",
		What:  "The same server gives different answers to different client networks, on purpose.",
		Why:   "Users are directed to a location near them. Different answers in different networks are then correct.",
		How:   "The same server is queried on behalf of several client networks (ECS).",
		Fix:   "Nothing needs to be done.",
		Refs:  []string{"RFC 7871"},
	},
	{
		ID: "NAM13", Group: Name, Severity: explain.Info, Kinds: names, judge: sameAgain,
		Title: "The answer does not rotate",
		What:  "The same server returns different parts of a larger set of records in rotation.",
		Why:   "This spreads the load. Different answers to repeated queries are then correct.",
		How:   "The same server is queried more than once.",
		Fix:   "Nothing needs to be done.",
		Refs:  []string{"RFC 1794"},
	},
	{
		ID: "NAM14", Group: Name, Severity: explain.Error, Kinds: asked, judge: publicAddresses,
		Title: "All addresses are public",
		What: "The name leads to an address that cannot be reached from the internet: private, loopback, link-local or " +
			"reserved.",
		Why:  "Users outside that network cannot connect. Some resolvers drop such answers.",
		How:  "The addresses are compared with the registry of special-purpose addresses.",
		Fix:  "Publish the public address, or keep the name out of the public zone.",
		Refs: []string{"RFC 6890", "RFC 1918"},
	},
	{
		ID: "NAM15", Group: Name, Severity: explain.Error, Kinds: names, judge: sameFamilies,
		Title: "A and AAAA lead to the same service",
		What:  "The A records are the expected ones, but the AAAA records are not: they often remain from the old host.",
		Why:   "Users with IPv6 reach another machine. Certificates fail, because their issuers prefer IPv6.",
		How:   "Both are compared with the expected records, or with those before the last change.",
		Fix:   "Change the AAAA records as you changed the A records, or delete them.",
		Refs:  []string{"RFC 8305 §3"},
	},
	{
		ID: "NAM16", Group: Name, Severity: explain.Warning, Kinds: names, judge: httpsAgrees,
		Title: "The HTTPS record agrees with the addresses",
		What:  "The HTTPS record has address hints that the name does not have, or contradicts itself.",
		Why:   "Browsers use these hints first. Users of different browsers reach different machines.",
		How:   "The HTTPS record's hints are compared with the A and AAAA records.",
		Fix:   "Make the hints the same as the A and AAAA records, or leave them out.",
		Refs:  []string{"RFC 9460 §7.3", "RFC 9460 §2.4"},
	},
	{
		ID: "NAM17", Group: Name, Severity: explain.Warning, Kinds: every, judge: idn,
		Title: "International letters in the name are written correctly",
		What:  "A label mixes scripts, or its xn-- form is not valid.",
		Why:   "Browsers show such names in their xn-- form or refuse them, because users can confuse them with other names.",
		How:   "Each label is converted according to IDNA, and the scripts of its letters are compared.",
		Fix:   "Type the name again in one script, and copy the xn-- form from your registrar.",
		Refs:  []string{"RFC 5891 §4", "RFC 5892"},
	},
	{
		ID: "NAM18", Group: Name, Severity: explain.Error, Kinds: every, judge: hostName,
		Title: "The name is a valid host name",
		What:  "The name has characters or a length that are not allowed in host names.",
		Why:   "Browsers, mail programs and certificate authorities refuse such names.",
		How:   "The name is checked against the rules for host names, if it has addresses.",
		Fix: "Use only letters, digits and hyphens, with no hyphen at the start or end of a label. Use at most 63 " +
			"characters per label and 253 in total.",
		Refs: []string{"RFC 1123 §2.1", "RFC 1035 §2.3.4"},
	},
	{
		ID: "NAM19", Group: Name, Severity: explain.Error, Kinds: every, judge: bareName,
		Title: "Only a name was entered",
		What:  "The input contains more than a name: https://, a slash, a port or spaces.",
		Why:   "The same text pasted into a DNS panel creates a record that does not work.",
		How:   "The input is parsed as a name, and the parts that do not belong to it are removed.",
		Fix:   "Enter only the name.",
		Refs:  []string{"RFC 1035 §2.3.1"},
	},
	{
		ID: "NAM20", Group: Name, Severity: explain.Error, Kinds: asked, judge: asExpected,
		Title: "The records are the expected ones",
		What:  "The authority has other records than you expect.",
		Why:   "Everyone will see the records of the authority, whatever a DNS panel shows.",
		How:   "The records given with --expect are compared with the answer of the authority, type by type.",
		Fix:   "Correct the record at your DNS host, or correct the expected record.",
	},
}
