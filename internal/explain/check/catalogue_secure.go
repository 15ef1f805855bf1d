package check

import "github.com/nameplane/nameplane/internal/explain"

// secureChecks are the checks of DNSSEC: the DS at the parent zone, the keys, the signatures and the denials.
var secureChecks = []Check{
	{
		ID: "SEC01", Group: DNSSEC, Severity: explain.Critical, Kinds: every, judge: dsMatches,
		Title: "The DS at the parent zone matches a key of the zone",
		What: "The zone is signed, but no DS record at the parent zone matches one of its keys. Or the parent zone has no " +
			"valid signature or proof for the DS.",
		Why: "Validating resolvers reject every answer of the zone. Their users, about a third of all users, cannot " +
			"reach it.",
		How:  "The chain of trust is validated from the root, with the records that the servers returned.",
		Fix:  "Replace the DS at your registrar with the DS of the key in use. If you do not want DNSSEC, remove the DS.",
		Refs: []string{"RFC 4035 §5.2", "RFC 6840 §5.2"},
	},
	{
		ID: "SEC02", Group: DNSSEC, Severity: explain.Critical, Kinds: every, judge: dsAndSigned,
		Title: "A zone with a DS is signed",
		What:  "The parent zone has a DS for the zone, but the zone has no keys: it is not signed.",
		Why: "Validating resolvers reject every answer. This happens when a domain moves to another DNS host and the old " +
			"DS remains.",
		How:  "The DS is read from the servers of the parent zone, and the keys (DNSKEY) from the servers of the zone.",
		Fix:  "Remove the DS at your registrar now. Later, sign the zone at the new host and add the new DS.",
		Refs: []string{"RFC 4035 §5.2", "RFC 6781 §4.3.5"},
	},
	{
		ID: "SEC03", Group: DNSSEC, Severity: explain.Critical, Kinds: every, judge: signatures,
		Title: "The signatures are valid for at least three more days",
		What:  "A signature has expired, is not valid yet, is wrong or missing, or expires within three days.",
		Why:   "Validating resolvers reject the answer from that moment.",
		How:   "The signatures in the answers are verified, and their times are compared with the clock.",
		Fix:   "Have your DNS host sign the zone again. Check that the signer runs and that its clock is right.",
		Refs:  []string{"RFC 4035 §5.3.1", "RFC 6781 §4.4.2"},
	},
	{
		ID: "SEC04", Group: DNSSEC, Severity: explain.Critical, Kinds: every, judge: denials,
		Title: "Denials of existence are proven",
		What:  "The proof (NSEC or NSEC3) that a name or type does not exist is missing or wrong.",
		Why: "Validating resolvers return an error instead of \"does not exist\". Wildcards and names without AAAA " +
			"records also fail.",
		How: "The records of the denial are validated as a resolver does it. It is an error if only some servers lack " +
			"the proof.",
		Fix:  "Sign the zone again. If it was moved as a file, check that its NSEC or NSEC3 records were not dropped.",
		Refs: []string{"RFC 4035 §5.4", "RFC 5155 §8"},
	},
	{
		ID: "SEC05", Group: DNSSEC, Severity: explain.Warning, Kinds: zones, judge: algorithms,
		Title: "Keys and digests use current algorithms",
		What:  "A key or DS uses a deprecated algorithm, or an RSA key has fewer than 2048 bits.",
		Why:   "Resolvers treat such a zone as unsigned, or will do so soon. Short keys can be broken.",
		How:   "The algorithms of the keys and DS records are compared with the list of recommended ones.",
		Fix:   "Change to algorithm 13 (ECDSA P-256) and digest type 2 (SHA-256).",
		Refs:  []string{"RFC 8624 §3", "RFC 9905", "RFC 9904"},
	},
	{
		ID: "SEC06", Group: DNSSEC, Severity: explain.Warning, Kinds: zones, judge: nsec3,
		Title: "NSEC3 is used without extra iterations and without salt, alike on all servers",
		What:  "The zone's NSEC3 records have iterations above 0, or a salt, or the servers use different ones.",
		Why: "Both cost time at every server and resolver, and protect nothing. Above 100 iterations, resolvers treat " +
			"the zone as unsigned.",
		How:  "The NSEC3 records of a denial are read.",
		Fix:  "Set iterations to 0 and the salt to none (\"-\"), or use NSEC.",
		Refs: []string{"RFC 9276 §3.1"},
	},
	{
		ID: "SEC07", Group: DNSSEC, Severity: explain.Notice, Kinds: zones, judge: signedHasDS,
		Title: "A signed zone has a DS at the parent zone",
		What:  "The zone is signed, but the parent zone has no DS for it.",
		Why:   "Without the DS nobody can verify the signatures, and they protect nothing.",
		How:   "The DS is queried at the servers of the parent zone, and the keys at the servers of the zone.",
		Fix: "Add the DS of the zone's key at your registrar, or publish CDS records in the zone if your registry reads " +
			"them.",
		Refs: []string{"RFC 4035 §2.4", "RFC 8078 §3"},
	},
	{
		ID: "SEC08", Group: DNSSEC, Severity: explain.Warning, Kinds: scan, judge: cds,
		Title: "CDS and CDNSKEY records match the DS",
		What:  "The zone's CDS or CDNSKEY records contradict each other or the DS, or ask for the DS to be deleted.",
		Why: "Registries that read these records change the DS automatically. With a wrong DS, validating resolvers " +
			"cannot resolve the domain.",
		How:  "CDS and CDNSKEY are read from the zone's own servers, and compared with each other, the keys and the DS.",
		Fix:  "Have your DNS host publish CDS and CDNSKEY records only for the keys that the DS must match.",
		Refs: []string{"RFC 7344 §4.1", "RFC 8078 §4"},
	},
	{
		ID: "SEC09", Group: DNSSEC, Severity: explain.Error, Kinds: zones, judge: sameKeys,
		Title: "All nameservers have the same keys",
		What:  "The nameservers give different DNSKEY records.",
		Why:   "A resolver that has the keys of one server rejects the signatures of another.",
		How:   "Every server of the zone is queried for its keys.",
		Fix:   "Publish all keys on all servers. With two providers, each must also publish the keys of the other.",
		Refs:  []string{"RFC 8901 §2.1"},
	},
	{
		ID: "SEC10", Group: DNSSEC, Severity: explain.Critical, Kinds: compared, judge: acceptedByValidators,
		Title: "Validating resolvers accept the answer",
		What:  "Resolvers fail for the name, but return the answer when validation is disabled.",
		Why:   "This proves that DNSSEC is broken: their users cannot reach the name.",
		How:   "Each resolver that fails is queried again with checking disabled (CD).",
		Fix: "SEC01 to SEC04 show what is wrong with the chain of trust. Removing the DS at the registrar ends the " +
			"failure after the given time.",
		Refs: []string{"RFC 4035 §3.2.2", "RFC 8914 §4.7"},
	},
	{
		ID: "SEC11", Group: DNSSEC, Severity: explain.Error, Kinds: every, judge: planDS,
		Title: "No DS is left when the nameservers change",
		What:  "The nameservers are about to change, and the parent zone has a DS for the keys of the old ones.",
		Why: "The new servers sign with other keys or not at all: validating resolvers reject their answers from the " +
			"first minute.",
		How: "The DS is read from the servers of the parent zone.",
		Fix: "First remove the DS at your registrar, wait for its TTL, and then change the nameservers. Or let both hosts " +
			"publish each other's keys.",
		Refs: []string{"RFC 6781 §4.3.5"},
	},
}
