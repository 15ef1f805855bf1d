package check

import "github.com/nameplane/nameplane/internal/explain"

// soaChecks are the checks of the SOA record, the serials and the negative TTL.
var soaChecks = []Check{
	{
		ID: "SOA01", Group: Zone, Severity: explain.Error, Kinds: every, judge: negativeTTL,
		Title: "Resolvers remember \"does not exist\" for at most an hour",
		What: "The negative TTL of the zone is more than an hour: the smaller of the TTL of the SOA record and its last " +
			"number, MINIMUM.",
		Why: "A user who queries a name before you create it gets \"does not exist\" for that long. A low TTL of the new " +
			"record does not help.",
		How: "A name that does not exist is queried at the zone's own servers, and the SOA record in the answer is read.",
		Fix: "Set the MINIMUM of the SOA record (your DNS host may call it negative TTL) to 3600 or less, and create " +
			"records before you publish them.",
		Refs: []string{"RFC 2308 §5"},
	},
	{
		ID: "SOA02", Group: Zone, Severity: explain.Info, Kinds: scan, judge: minimumCounts,
		Title: "The MINIMUM of the SOA record is the negative TTL",
		What:  "The TTL of the SOA record is smaller than its MINIMUM.",
		Why:   "Only the smaller one is the negative TTL. Changing MINIMUM, as most instructions say, then has no effect.",
		How:   "The SOA record is read from the zone's own servers.",
		Fix:   "Nothing needs to be done. To change the negative TTL, change the TTL of the SOA record.",
		Refs:  []string{"RFC 2308 §5"},
	},
	{
		ID: "SOA03", Group: Zone, Severity: explain.Error, Kinds: every, judge: sameSerial,
		Title: "All nameservers have the same version of the zone",
		What:  "The nameservers have different serials of the zone.",
		Why: "Some users get old records and some get new ones. This is normal for some minutes after a change, but not " +
			"for longer than the refresh time.",
		How: "Every address is queried for the SOA record, and the serials are compared. Servers with an older serial are " +
			"queried again after some seconds. Serials of different primaries (MNAME) are not compared. The age of the newest " +
			"version is known from its serial, if that is a date, or from earlier scans.",
		Fix: "Find out why the server with the older serial does not fetch the zone: transfers refused, a wrong primary, " +
			"or a missing key.",
		Refs: []string{"RFC 1034 §4.3.5", "RFC 1982 §3", "RFC 1996"},
	},
	{
		ID: "SOA04", Group: Zone, Severity: explain.Error, Kinds: scan, judge: serialForward,
		Title: "The serial of the zone has not gone back",
		What:  "The serial is lower than at an earlier scan.",
		Why: "Secondary servers treat a lower serial as an old version and do not fetch it. They keep serving the old " +
			"zone.",
		How:  "The highest serial of all servers is compared with that of earlier scans.",
		Fix:  "Raise the serial above the highest one seen before.",
		Refs: []string{"RFC 1982 §7", "RFC 1034 §4.3.5"},
	},
	{
		ID: "SOA05", Group: Zone, Severity: explain.Warning, Kinds: scan, judge: timers,
		Title: "The timers of the SOA record fit together",
		What:  "RETRY is not below REFRESH, or EXPIRE is below the sum of both, or EXPIRE is below 7 days.",
		Why: "The timers control how secondaries behave when the primary is down. With a short EXPIRE, the whole zone " +
			"stops working after one long weekend.",
		How:  "The SOA record is read from the zone's own servers.",
		Fix:  "Usual values: REFRESH 7200, RETRY 900, EXPIRE 1209600.",
		Refs: []string{"RFC 1912 §2.2", "RFC 1035 §3.3.13"},
	},
	{
		ID: "SOA06", Group: Zone, Severity: explain.Notice, Kinds: scan, judge: rname,
		Title: "The SOA record names a valid mailbox",
		What:  "The mailbox of the SOA record (RNAME) contains an @, or is not a mailbox.",
		Why:   "People who want to report a problem with the zone cannot reach you.",
		How:   "The SOA record is read from the zone's own servers.",
		Fix:   "Write the address with a dot instead of the @: hostmaster.example.org. for hostmaster@example.org.",
		Refs:  []string{"RFC 1035 §3.3.13", "RFC 1912 §2.2"},
	},
	{
		ID: "SOA07", Group: Zone, Severity: explain.Notice, Kinds: scan, judge: mname,
		Title: "The primary server that the SOA record names works",
		What:  "The name in the SOA record (MNAME) does not exist, is an alias, or does not answer for the zone.",
		Why: "Dynamic updates are sent to that server and fail. Otherwise this does no harm: a primary may be hidden on " +
			"purpose.",
		How:  "The name is resolved, and its addresses are queried for the SOA record.",
		Fix:  "Enter the name of your primary nameserver in the SOA record.",
		Refs: []string{"RFC 1035 §3.3.13", "RFC 2136 §4.3"},
	},
	{
		ID: "SOA08", Group: Zone, Severity: explain.Critical, Kinds: zones, judge: oneSOA,
		Title: "The zone has one SOA record, at its own name",
		What:  "A nameserver returns no SOA record, more than one, or the SOA record of another name.",
		Why: "Secondaries cannot copy a zone without one, and resolvers cannot cache its denials. Of several, nobody " +
			"knows which is right.",
		How:  "Every address is queried for the SOA record of the zone.",
		Fix:  "Give the zone exactly one SOA record on that server.",
		Refs: []string{"RFC 1035 §5.2", "RFC 2181 §6.1"},
	},
	{
		ID: "SOA09", Group: Zone, Severity: explain.Critical, Kinds: zones, judge: negativeSOA,
		Title: "Negative answers contain the SOA record",
		What:  "A nameserver denies names without the required SOA record.",
		Why: "Resolvers cannot cache such an answer and query again and again, or they cache it for a time that nobody " +
			"chose. In a signed zone, validating resolvers reject it.",
		How: "A name that does not exist is queried at every address. It is critical if the zone is signed and no server " +
			"denies correctly.",
		Fix:  "Update or replace the software of that nameserver.",
		Refs: []string{"RFC 2308 §3", "RFC 2308 §5"},
	},
	{
		ID: "SOA10", Group: Zone, Severity: explain.Notice, Kinds: every, judge: apexTTL,
		Title: "The TTL of the NS records is at most a day before a change",
		What:  "The TTL of the zone's NS records or of the records at its apex is more than a day, and a change is planned.",
		Why:   "Resolvers keep the old records for that long after the change.",
		How:   "The NS records are read from the zone's own servers.",
		Fix:   "Lower these TTLs to 3600 now, and make the change when the old TTL has passed.",
		Refs:  []string{"RFC 1035 §3.2.1", "RFC 2181 §5.4.1"},
	},
}
