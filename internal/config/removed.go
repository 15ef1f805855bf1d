package config

// removed explains what replaced each setting of older versions. Most of them were limits that nobody had changed.
var removed = map[string]string{
	"dns.rrl.enabled":       "set dns.rrl.responses: unlimited to answer every query; remove the line",
	"dns.rrl.negative":      derived,
	"dns.rrl.errors":        derived,
	"dns.rrl.slip":          fixed("2"),
	"dns.rrl.window":        fixed("1s"),
	"dns.tcp.max_queries":   fixed("no limit"),
	"dns.tcp.idle_timeout":  fixed("10s"),
	"dns.tcp.read_timeout":  fixed("5s"),
	"dns.tcp.write_timeout": fixed("5s"),

	"http.max_connections": fixed("1024"),
	"http.max_body":        fixed("1MiB"),
	"http.stall":           fixed("30s"),
	"http.session_life":    fixed("1h"),
	"apps.max_connections": fixed("1024"),
	"mep.max_connections":  fixed("256"),

	"apps.tls":               sharedTLS,
	"mep.tls":                sharedTLS,
	"apps.app_header":        edgeGallery,
	"apps.put":               "applications may switch their rules, and more if the platform permits it; remove the line",
	"apps.extensions":        edgeGallery,
	"mep.edgegallery_status": edgeGallery,
	"mec.max_apps":           fixed("100000"),
	"mec.max_rules":          fixed("1000"),
	"mec.max_events":         fixed("10000"),

	"forward.policy":        "upstreams are asked in their order; remove the line",
	"forward.timeout":       fixed("2s"),
	"forward.max_in_flight": fixed("1024"),
	"forward.mix_case":      fixed("false"),

	"transfer.max_transfers":  fixed("32"),
	"transfer.max_per_client": fixed("8"),
	"transfer.max_rate":       fixed("no limit"),
	"transfer.max_time":       fixed("1h"),
	"transfer.max_zone":       "quotas of projects and the memory limit of the server bound transfers; remove the line",

	"follow.timeout":       fixed("2s"),
	"follow.rate":          fixed("100"),
	"follow.parallel":      fixed("16"),
	"follow.max_addresses": fixed("20"),

	"explain.parallel":    fixed("4"),
	"explain.per_client":  fixed("20"),
	"explain.per_target":  fixed("6"),
	"explain.keep":        fixed("30"),
	"explain.keep_all":    fixed("5000"),
	"journal.record_sets": fixed("10000"),

	"designate.quotas.api_export_size": "set the quota of each project through the API; remove the line",
}

const (
	derived     = "it follows from dns.rrl.responses; remove the line"
	sharedTLS   = "the certificate is that of http.tls, and client_ca is a setting of the listener; remove the line"
	edgeGallery = "remove the line, and set mec.edgegallery: true for EdgeGallery's behaviour in all APIs"
)

func fixed(value string) string { return "it is always " + value + "; remove the line" }
