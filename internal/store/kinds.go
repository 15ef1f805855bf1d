package store

// Kind is the kind of an object in Objects. It is the first part of the object's key.
type Kind string

// These are the kinds of all objects. Their values are in the stores of users and never change.
const (
	KindToken        Kind = "token"
	KindUser         Kind = "user"
	KindProject      Kind = "project"
	KindSessionKey   Kind = "sessionkey"
	KindEndedSession Kind = "endedsession"

	KindTimeSigned Kind = "timesigned" // newest Time Signed of the updates with a TSIG key

	KindTLD             Kind = "tld"
	KindBlacklist       Kind = "blacklist"
	KindTSIGKey         Kind = "tsigkey"
	KindQuota           Kind = "quota"
	KindZoneExport      Kind = "zone_export"
	KindZoneImport      Kind = "zone_import"
	KindTransferRequest Kind = "zone_transfer_request"
	KindTransferAccept  Kind = "zone_transfer_accept"
	KindShare           Kind = "share of"    // shares of a zone
	KindSharedWith      Kind = "shared with" // zones that are shared with a project
	KindOwned           Kind = "owned"       // IDs of the objects of one kind of a project
	KindZoneRequest     Kind = "requestof"   // ID of the transfer request that offers a zone

	KindZoneOf    Kind = "zone of"    // zones of a project: the key of the zone's name -> the zone's ID
	KindZoneCount Kind = "zone count" // number of zones of a project

	KindPool    Kind = "pool"     // pools of name servers, except the default pool
	KindPoolDue Kind = "pool due" // pools whose zones do not have the new NS records yet
	KindZoneIn  Kind = "zone in"  // zones in a pool: the key of the zone's name -> the zone's ID

	KindLeftJournal Kind = "left journal" // IDs of deleted zones whose journal is not deleted yet

	KindSecondary Kind = "secondary"
	KindPowerDNS  Kind = "powerdns" // settings of a zone that only the PowerDNS API has
	KindAlias     Kind = "alias"
	KindAliasDue  Kind = "aliasdue" // names whose ALIAS record sets must be flattened again
	KindScan      Kind = "explainscan"
	KindFacts     Kind = "explainfacts" // separate from scans, so that a list of scans does not read them

	KindMECApp          Kind = "mecapp"
	KindMECAppName      Kind = "mecappname"
	KindMECClaims       Kind = "mecclaims" // all claims on one name and type: a change of one sees the others
	KindMECConfig       Kind = "mecconfig"
	KindMECEvent        Kind = "mecevent"
	KindMECExpiry       Kind = "mecexpiry"
	KindMECName         Kind = "mecname"    // names of rules and records, in canonical order
	KindMECRecord       Kind = "mecrecord"  // records of a zone
	KindMECRule         Kind = "mecrule"    // rules of an application
	KindMECRunning      Kind = "mecrunning" // the tasks that a crash interrupted, to find them without reading all tasks
	KindMECState        Kind = "mecstate"   // counters of the service
	KindMECSubscription Kind = "mecsub"     // subscriptions of an application
	KindMECTask         Kind = "mectask"
	KindMECZone         Kind = "meczone"
)

// This map lists every kind once. Two kinds with the same value would be the same key of the map, which does not
// compile.
var _ = map[Kind]bool{
	KindToken: true, KindUser: true, KindProject: true, KindSessionKey: true, KindEndedSession: true,
	KindTimeSigned: true,

	KindTLD: true, KindBlacklist: true, KindTSIGKey: true, KindQuota: true, KindZoneExport: true, KindZoneImport: true,
	KindTransferRequest: true, KindTransferAccept: true, KindShare: true, KindSharedWith: true, KindOwned: true,
	KindZoneRequest: true, KindZoneOf: true, KindZoneCount: true, KindLeftJournal: true,
	KindPool: true, KindPoolDue: true, KindZoneIn: true,

	KindSecondary: true, KindPowerDNS: true, KindAlias: true, KindAliasDue: true, KindScan: true, KindFacts: true,

	KindMECApp: true, KindMECAppName: true, KindMECClaims: true, KindMECConfig: true, KindMECEvent: true,
	KindMECExpiry: true, KindMECName: true, KindMECRecord: true, KindMECRule: true, KindMECRunning: true,
	KindMECState:        true,
	KindMECSubscription: true, KindMECTask: true, KindMECZone: true,
}

// Of returns the kind of the objects of k that belong to an owner. Such objects can be listed without reading all
// others.
func (k Kind) Of(owner string) Kind {
	if k == KindShare || k == KindSharedWith || k == KindZoneOf {
		return k + " " + Kind(owner)
	}
	return k + "\x00" + Kind(owner)
}
