package check

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/explain"
)

func edns(f *explain.Facts) []explain.Finding {
	var all []explain.Finding
	for _, p := range []struct {
		of    func(explain.Server) explain.Probe
		words string
	}{
		{func(s explain.Server) explain.Probe { return s.EDNS }, "does not know EDNS"},
		{func(s explain.Server) explain.Probe { return s.EDNSVersion }, "does not handle a higher version of EDNS as it should"},
		{func(s explain.Server) explain.Probe { return s.EDNSOption }, "does not handle an unknown EDNS option as it should"},
		{func(s explain.Server) explain.Probe { return s.EDNSFlag }, "does not handle an unknown EDNS flag as it should"},
	} {
		all = append(all, probe{of: p.of, bad: explain.No, ok: "All servers of %s handle EDNS as they should.", open: "How they handle EDNS",
			words: func(s explain.Server, zone string) string {
				return fmt.Sprintf("%s, a server of %s, %s%s.", server(s), zone, p.words, detail(p.of(s)))
			}}.judge(f)...)
	}
	if all = worst(all); len(all) > 0 && all[0].Status != explain.Fail {
		return once(all)
	}
	return all
}

// once leaves out findings that say the same.
func once(all []explain.Finding) (out []explain.Finding) {
	said := map[string]bool{}
	for _, x := range all {
		if !said[x.Words] {
			out = append(out, x)
		}
		said[x.Words] = true
	}
	return out
}

func truncation(f *explain.Facts) []explain.Finding {
	return probe{of: func(s explain.Server) explain.Probe { return s.Truncation }, bad: explain.No,
		ok: "All servers of %s keep to the size that they are given.", open: "Whether they keep to the size that they are given",
		words: func(s explain.Server, zone string) string {
			return fmt.Sprintf("%s, a server of %s, does not keep to the packet size that it is given%s.", server(s), zone, detail(s.Truncation))
		}}.judge(f)
}

func echo(f *explain.Facts) []explain.Finding {
	return probe{of: func(s explain.Server) explain.Probe { return s.Case }, bad: explain.No,
		ok: "All servers of %s return names in the case in which they were asked.", open: "Whether they return names in the same case",
		words: func(s explain.Server, zone string) string {
			return fmt.Sprintf("%s, a server of %s, changes capital and small letters of the question%s.", server(s), zone, detail(s.Case))
		}}.judge(f)
}

func source(f *explain.Facts) []explain.Finding {
	return probe{of: func(s explain.Server) explain.Probe { return s.Source }, bad: explain.No,
		ok: "All servers of %s reply from the address that was asked.", open: "From which address they reply",
		words: func(s explain.Server, zone string) string {
			return fmt.Sprintf("%s, a server of %s, replies from another address than the one that was asked%s.", server(s), zone, detail(s.Source))
		}}.judge(f)
}

func types(f *explain.Facts) []explain.Finding {
	return probe{of: func(s explain.Server) explain.Probe { return s.Types }, bad: explain.No,
		ok: "All servers of %s reply to new and unknown record types.", open: "Whether they reply to new record types",
		words: func(s explain.Server, zone string) string {
			return fmt.Sprintf("%s, a server of %s, does not reply to all record types%s.", server(s), zone, detail(s.Types))
		}}.judge(f)
}

func limits(f *explain.Facts) []explain.Finding {
	return probe{of: func(s explain.Server) explain.Probe { return s.Limits }, bad: explain.Yes,
		ok: "No server of %s was seen to limit our questions.", open: "Whether they limit the rate of replies",
		words: func(s explain.Server, zone string) string {
			return fmt.Sprintf("%s, a server of %s, limits the rate of its replies%s.", server(s), zone, detail(s.Limits))
		}}.judge(f)
}
