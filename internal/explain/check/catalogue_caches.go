package check

import "github.com/nameplane/nameplane/internal/explain"

// cacheChecks are the checks of TTLs and of what recursive resolvers hold.
var cacheChecks = []Check{
	{
		ID: "TTL01", Group: Caches, Severity: explain.Warning, Kinds: names, judge: lowTTL,
		Title: "The TTL is an hour or less before a change",
		What:  "A record that is about to be changed has a TTL of more than an hour.",
		Why:   "Resolvers keep the old record for that long after the change.",
		How:   "The TTL is read from the zone's own servers. In a chain of aliases, every link counts.",
		Fix: "Lower the TTL to 300, wait until the old TTL has passed, make the change, and raise the TTL again when " +
			"everything works.",
		Refs: []string{"RFC 1035 §3.2.1"},
	},
	{
		ID: "TTL02", Group: Caches, Severity: explain.Error, Kinds: compared, judge: noneOld,
		Title: "No resolver holds an old answer",
		What:  "Resolvers still give an answer that the zone's own servers no longer give.",
		Why:   "Their users see the old record until its TTL has passed.",
		How: "Public resolvers are queried, and their answers are compared with those of all servers of the zone. " +
			"Answers that depend on the client network, rotate, or are filtered do not count.",
		Fix: "Wait until the given time, or empty the cache on the web page of the resolver's operator. Keep the old " +
			"address working until then.",
		Refs: []string{"RFC 1034 §4.3.4"},
	},
	{
		ID: "TTL03", Group: Caches, Severity: explain.Error, Kinds: compared, judge: noneNegative,
		Title: "No resolver remembers that the name does not exist",
		What:  "Resolvers say that the name or the record does not exist, although the zone's own servers have it.",
		Why: "Someone queried the name before the record was created. Users of that resolver do not see it until the " +
			"negative TTL has passed.",
		How: "Public resolvers are queried, but only for records that the zone's own servers have.",
		Fix: "Wait until the given time, or empty the cache on the web page of the resolver's operator. Changing the " +
			"record again does not help.",
		Refs: []string{"RFC 2308 §5"},
	},
	{
		ID: "TTL04", Group: Caches, Severity: explain.Warning, Kinds: names, judge: noRanges,
		Title: "Cached NSEC records cannot hide a new name",
		What:  "The zone is signed with NSEC, and the name is new or does not exist yet.",
		Why: "An NSEC record says that no name exists between two others. Validating resolvers may use it to deny a name " +
			"that they were never queried for.",
		How: "The denial of a name is read from the zone's own servers: its kind, its range and its TTL.",
		Fix: "Wait for the negative TTL before you publish a new name. NSEC3, or NSEC records that cover a single name, " +
			"avoid this.",
		Refs: []string{"RFC 8198 §5"},
	},
	{
		ID: "TTL05", Group: Caches, Severity: explain.Notice, Kinds: names, judge: sameTTL,
		Title: "The records of a set have one TTL, on all servers",
		What:  "Records of one name and type have different TTLs, in one answer or on different servers.",
		Why: "The TTLs of a set must be equal, and resolvers use the lowest one. Different TTLs on different servers " +
			"show different versions of the zone.",
		How:  "The TTLs in the answers of all servers of the zone are compared.",
		Fix:  "Give all records of that name and type the same TTL.",
		Refs: []string{"RFC 2181 §5.2"},
	},
	{
		ID: "TTL06", Group: Caches, Severity: explain.Notice, Kinds: names, judge: notTooLow,
		Title: "The TTL is at least 30 seconds",
		What:  "The TTL is so low that resolvers hardly cache the answer.",
		Why: "Nearly every visit must query your nameservers first. That costs time, and users notice even a short " +
			"outage of the nameservers.",
		How:  "The TTL is read from the zone's own servers.",
		Fix:  "Use 60 or more, unless the record changes all the time.",
		Refs: []string{"RFC 1035 §3.2.1", "RFC 1912 §2.2"},
	},
	{
		ID: "TTL07", Group: Caches, Severity: explain.Warning, Kinds: every, judge: parentTTL,
		Title: "No change has to wait for a TTL of the parent zone",
		What: "The nameservers will change or have changed, and the parent zone lets resolvers keep the old ones longer " +
			"than the zone itself does.",
		Why:  "You cannot lower that TTL: the registry sets it. It is two days for many domains.",
		How:  "The TTLs of the NS and DS records are read from the servers of the parent zone.",
		Fix:  "Keep the old servers running, with the same records as the new ones, until the given time.",
		Refs: []string{"RFC 2181 §5.4.1", "RFC 1034 §4.2.2"},
	},
	{
		ID: "TTL08", Group: Caches, Severity: explain.Warning, Kinds: compared, judge: noneStale,
		Title: "No resolver serves expired answers",
		What:  "A resolver serves an answer after its TTL, because it could not reach the zone's servers.",
		Why:   "That resolver cannot reach your nameservers, or could not a moment ago.",
		How:   "The resolver says so itself, with an extended error (3 or 19).",
		Fix: "Check that all of your nameservers can be reached from everywhere (DEL05), and that they do not block that " +
			"operator.",
		Refs: []string{"RFC 8767 §5", "RFC 8914 §4.4"},
	},
	{
		ID: "TTL09", Group: Caches, Severity: explain.Notice, Kinds: compared, judge: noneLonger,
		Title: "No resolver keeps answers for longer than their TTL",
		What:  "A resolver returns the answer with a longer TTL than the zone's own servers do.",
		Why:   "Its users will see the next change later than you plan for.",
		How:   "The remaining TTL at each resolver is compared with the TTL of the zone's own servers.",
		Fix:   "Wait longer after changes, or inform the resolver's operator.",
		Refs:  []string{"RFC 1035 §3.2.1", "RFC 8767 §4"},
	},
	{
		ID: "TTL10", Group: Caches, Severity: explain.Info, Kinds: compared, judge: consistent,
		Title: "Each resolver always gives the same answer",
		What:  "Several caches reply behind one address, and they do not hold the same answer.",
		Why:   "The answer may change with each query until all caches are current. This is normal.",
		How:   "Each address is queried several times.",
		Fix:   "Nothing needs to be done. Wait until the given time.",
		Refs:  []string{"RFC 4786 §4.4"},
	},
	{
		ID: "TTL11", Group: Caches, Severity: explain.Error, Kinds: names, judge: ownResolver,
		Title: "The resolver of this machine gives the answer of the authority",
		What:  "The resolver of this machine gives another answer than the zone's own servers.",
		Why:   "This machine does not see what the zone's servers publish. Others may already see the right answer.",
		How:   "The resolver in this machine's configuration is queried, and its answer is compared.",
		Fix: "Restart or flush that resolver (on this machine, in the router, or at your provider), or wait until the " +
			"given time.",
		Refs: []string{"RFC 1034 §4.3.4"},
	},
}
