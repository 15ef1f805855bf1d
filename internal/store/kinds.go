package store

// Kind is the kind of an object in Objects: the first part of its key.
type Kind string

// The kinds of all objects. Their values are in the stores of users and never change.
const (
	KindToken        Kind = "token"
	KindUser         Kind = "user"
	KindProject      Kind = "project"
	KindSessionKey   Kind = "sessionkey"
	KindEndedSession Kind = "endedsession"

	KindTLD             Kind = "tld"
	KindBlacklist       Kind = "blacklist"
	KindTSIGKey         Kind = "tsigkey"
	KindQuota           Kind = "quota"
	KindZoneExport      Kind = "zone_export"
	KindZoneImport      Kind = "zone_import"
	KindTransferRequest Kind = "zone_transfer_request"
	KindTransferAccept  Kind = "zone_transfer_accept"
	KindShare           Kind = "share of"    // of a zone
	KindSharedWith      Kind = "shared with" // a project
	KindOwned           Kind = "owned"       // lists the objects of one kind of a project; their rows are under their kind
	KindZoneRequest     Kind = "requestof"   // id of the transfer request that offers a zone

	KindZoneOf    Kind = "zone of"    // a project, by the key of its name: the zone's id
	KindZoneCount Kind = "zone count" // of a project

	KindSecondary Kind = "secondary"
	KindAlias     Kind = "alias"
	KindAliasDue  Kind = "aliasdue" // names whose ALIAS record sets are still to be flattened again
	KindScan      Kind = "explainscan"
	KindFacts     Kind = "explainfacts" // apart from scans: a list of scans does not read them

	KindMECApp          Kind = "mecapp"
	KindMECAppName      Kind = "mecappname"
	KindMECClaims       Kind = "mecclaims" // all claims on one name and type in one row: a change of one sees the others
	KindMECConfig       Kind = "mecconfig"
	KindMECEvent        Kind = "mecevent"
	KindMECExpiry       Kind = "mecexpiry"
	KindMECName         Kind = "mecname"    // names of rules and records, in the order of names
	KindMECRecord       Kind = "mecrecord"  // of a zone
	KindMECRule         Kind = "mecrule"    // of an application
	KindMECRunning      Kind = "mecrunning" // finds the tasks that a crash interrupted without reading all tasks
	KindMECState        Kind = "mecstate"   // counters of the service
	KindMECSubscription Kind = "mecsub"     // of an application
	KindMECTask         Kind = "mectask"
	KindMECZone         Kind = "meczone"
)

// Every kind is listed once. Two kinds with the same name do not compile: they are the same key of this map.
var _ = map[Kind]bool{
	KindToken: true, KindUser: true, KindProject: true, KindSessionKey: true, KindEndedSession: true,

	KindTLD: true, KindBlacklist: true, KindTSIGKey: true, KindQuota: true, KindZoneExport: true, KindZoneImport: true,
	KindTransferRequest: true, KindTransferAccept: true, KindShare: true, KindSharedWith: true, KindOwned: true,
	KindZoneRequest: true, KindZoneOf: true, KindZoneCount: true,

	KindSecondary: true, KindAlias: true, KindAliasDue: true, KindScan: true, KindFacts: true,

	KindMECApp: true, KindMECAppName: true, KindMECClaims: true, KindMECConfig: true, KindMECEvent: true,
	KindMECExpiry: true, KindMECName: true, KindMECRecord: true, KindMECRule: true, KindMECRunning: true, KindMECState: true,
	KindMECSubscription: true, KindMECTask: true, KindMECZone: true,
}

// Of returns the kind of those objects of k that belong to an owner. They can be listed without reading the others.
func (k Kind) Of(owner string) Kind {
	if k == KindShare || k == KindSharedWith || k == KindZoneOf {
		return k + " " + Kind(owner)
	}
	return k + "\x00" + Kind(owner)
}
