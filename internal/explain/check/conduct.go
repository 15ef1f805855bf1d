package check

import "github.com/nameplane/nameplane/internal/explain"

func edns(f *explain.Facts) []explain.Finding {
	var all []explain.Finding
	for _, p := range []probe{
		{of: func(s explain.Server) explain.Probe { return s.EDNS }, words: "%s, a server of %s, does not know EDNS"},
		{of: func(s explain.Server) explain.Probe { return s.EDNSVersion }, words: "%s, a server of %s, does not handle a higher version of EDNS as it should"},
		{of: func(s explain.Server) explain.Probe { return s.EDNSOption }, words: "%s, a server of %s, does not handle an unknown EDNS option as it should"},
		{of: func(s explain.Server) explain.Probe { return s.EDNSFlag }, words: "%s, a server of %s, does not handle an unknown EDNS flag as it should"},
	} {
		p.bad, p.ok, p.open = explain.No, "All servers of %s handle EDNS as they should.", "How they handle EDNS"
		all = append(all, p.judge(f)...)
	}
	if all = worst(all); len(all) > 0 && all[0].Status != explain.Fail {
		return once(all)
	}
	return all
}

// once leaves out findings that say the same.
func once(all []explain.Finding) []explain.Finding {
	said := map[string]bool{}
	return only(all, func(x explain.Finding) bool {
		repeated := said[x.Words]
		said[x.Words] = true
		return !repeated
	})
}

var truncation = probe{of: func(s explain.Server) explain.Probe { return s.Truncation }, bad: explain.No,
	ok: "All servers of %s keep to the size that they are given.", open: "Whether they keep to the size that they are given",
	words: "%s, a server of %s, does not keep to the packet size that it is given"}

var echo = probe{of: func(s explain.Server) explain.Probe { return s.Case }, bad: explain.No,
	ok: "All servers of %s return names in the case in which they were asked.", open: "Whether they return names in the same case",
	words: "%s, a server of %s, changes capital and small letters of the question"}

var source = probe{of: func(s explain.Server) explain.Probe { return s.Source }, bad: explain.No,
	ok: "All servers of %s reply from the address that was asked.", open: "From which address they reply",
	words: "%s, a server of %s, replies from another address than the one that was asked"}

var types = probe{of: func(s explain.Server) explain.Probe { return s.Types }, bad: explain.No,
	ok: "All servers of %s reply to new and unknown record types.", open: "Whether they reply to new record types",
	words: "%s, a server of %s, does not reply to all record types"}

var limits = probe{of: func(s explain.Server) explain.Probe { return s.Limits }, bad: explain.Yes,
	ok: "No server of %s was seen to limit our questions.", open: "Whether they limit the rate of replies",
	words: "%s, a server of %s, limits the rate of its replies"}
