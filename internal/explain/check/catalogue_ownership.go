package check

import "github.com/nameplane/nameplane/internal/explain"

// ownershipChecks are the checks of the proofs of ownership.
var ownershipChecks = []Check{
	{
		ID: "OWN01", Group: Service, Severity: explain.Critical, Kinds: services, judge: proofPresent,
		Title: "The record that proves the ownership is there",
		What:  "The TXT record that proves the ownership is missing, at some or at all servers of the zone.",
		Why:   "The provider does not serve a hostname whose owner has not proved it.",
		How: "All servers of the zone are asked for the record, and no cache. A resolver that is asked too early " +
			"would remember that the record does not exist. If it is missing, names at which it may have been entered " +
			"by mistake are asked for.",
		Fix: "Enter the TXT record at the DNS host of the zone.",
	},
	{
		ID: "OWN02", Group: Service, Severity: explain.Critical, Kinds: services, judge: proofSame,
		Title: "The record has the value that proves the ownership",
		What:  "The TXT record is there, but its value was copied wrong.",
		Why:   "The provider compares the value character by character.",
		How:   "The values at all servers of the zone are compared with the wanted one, and the first difference is shown.",
		Fix:   "Replace the value of the TXT record.",
	},
	{
		ID: "OWN03", Group: Service, Severity: explain.Critical, Kinds: services, judge: proofCurrent,
		Title: "The record has no older token",
		What:  "The TXT record has an older token of the same form, instead of the right one or, as a notice, beside it.",
		Why:   "An older token proves nothing, and one that is left over may belong to somebody else.",
		How:   "The values are compared with the form of the wanted one: its length and its punctuation.",
		Fix:   "Replace the older token.",
	},
	{
		ID: "OWN04", Group: Service, Severity: explain.Critical, Kinds: services, judge: tokenServed,
		Title: "The page that proves the ownership is there",
		What:  "The URL returns another status, a redirect or another text.",
		Why:   "The provider does not serve a hostname whose owner has not proved it.",
		How: "Every address of the hostname is asked for the URL. At most 1 KiB is read, and redirects are not " +
			"followed: they could lead to a page of somebody else.",
		Fix: "Serve exactly the text at the URL, with status 200.",
	},
	{
		ID: "OWN05", Group: Service, Severity: explain.Critical, Kinds: services, judge: proofKept,
		Title: "The proof of ownership was not removed",
		What:  "An earlier check found the proof, and now it is missing.",
		Why:   "A domain that has changed its owner must not stay verified, and a short outage must not stop a service.",
		How: "The result is compared with that of earlier checks. A verified domain becomes unverified when three " +
			"checks found no proof, the last of them a day after the first.",
		Fix: "Restore the proof.",
	},
	{
		ID: "OWN06", Group: Service, Severity: explain.Critical, Kinds: services, judge: delegationProof,
		Title: "All nameservers prove the ownership",
		What:  "Some nameservers of the zone are not those that prove the ownership.",
		Why:   "Everybody who operates one of the nameservers can answer for the zone, so one of several proves nothing.",
		How:   "The nameservers of the zone, at its parent and in itself, are compared with the wanted ones.",
		Fix:   "Delegate the zone only to the wanted nameservers.",
	},
}
