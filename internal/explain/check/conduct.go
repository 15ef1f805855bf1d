package check

import "github.com/nameplane/nameplane/internal/explain"

// edns is check SRV01: Every nameserver handles EDNS correctly. It combines four EDNS tests. They share one pass
// message, so once removes repetitions.
func edns(f *explain.Facts) []explain.Finding {
	var all []explain.Finding
	for _, p := range []probe{
		{of: func(s explain.Server) explain.Probe { return s.EDNS }, words: "%s, a server of %s, does not support EDNS"},
		{of: func(s explain.Server) explain.Probe {
			return s.EDNSVersion
		}, words: "%s, a server of %s, does not handle a higher EDNS version correctly"},
		{of: func(s explain.Server) explain.Probe {
			return s.EDNSOption
		}, words: "%s, a server of %s, does not handle an unknown EDNS option correctly"},
		{of: func(s explain.Server) explain.Probe {
			return s.EDNSFlag
		}, words: "%s, a server of %s, does not handle an unknown EDNS flag correctly"},
	} {
		p.bad, p.ok, p.open = explain.No, "All servers of %s handle EDNS correctly.", "How they handle EDNS"
		all = append(all, p.judge(f)...)
	}
	// All four probes pass with the same sentence.
	if all = worst(all); len(all) > 0 && all[0].Status != explain.Fail {
		return once(all)
	}
	return all
}

// once removes findings with the same sentence.
func once(all []explain.Finding) []explain.Finding {
	seen := map[string]bool{}
	return only(all, func(x explain.Finding) bool {
		repeated := seen[x.Words]
		seen[x.Words] = true
		return !repeated
	})
}

// truncation is check SRV02: Every nameserver respects the UDP size of the query.
var truncation = probe{of: func(s explain.Server) explain.Probe { return s.Truncation }, bad: explain.No,
	ok: "All servers of %s respect the UDP size of the query.", open: "Whether they respect the UDP size of the query",
	words: "%s, a server of %s, does not respect the UDP size of the query"}

// echo is check SRV03: Every nameserver preserves the case of the queried name.
var echo = probe{of: func(s explain.Server) explain.Probe { return s.Case }, bad: explain.No,
	ok:    "All servers of %s preserve the case of the queried name.",
	open:  "Whether they preserve the case of the queried name",
	words: "%s, a server of %s, changes upper and lower case of the question"}

// source is check SRV04: Every nameserver replies from the address that was queried.
var source = probe{of: func(s explain.Server) explain.Probe { return s.Source }, bad: explain.No,
	ok: "All servers of %s reply from the address that was queried.", open: "From which address they reply",
	words: "%s, a server of %s, replies from another address than the one that was queried"}

// types is check SRV05: Every nameserver replies to all record types.
var types = probe{of: func(s explain.Server) explain.Probe { return s.Types }, bad: explain.No,
	ok: "All servers of %s reply to new and unknown record types.", open: "Whether they reply to new record types",
	words: "%s, a server of %s, does not reply to all record types"}

// limits is check SRV06: No nameserver limited our questions.
var limits = probe{of: func(s explain.Server) explain.Probe { return s.Limits }, bad: explain.Yes,
	ok: "No server of %s was seen to limit the rate of its replies.", open: "Whether they limit the rate of replies",
	words: "%s, a server of %s, limits the rate of its replies"}
