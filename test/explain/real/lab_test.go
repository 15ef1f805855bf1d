package real_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/test/explain/real"
)

// failures are the questions about a domain for which a recursor fails.
type failures struct {
	servfail []string // questions with SERVFAIL
	other    []string // questions with another failure
}

// TestLab compares the verdict about each domain of the lab with real validating resolvers. If Unbound or BIND replies
// SERVFAIL, the verdict is not Working. If all four resolvers succeed, nothing is critical.
func TestLab(t *testing.T) {
	env, l := labInternet(t)
	for _, d := range l.Domains {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(d.Try)[1:]
			if words[0] == "compare" {
				words[0] = "analyze" // the recursors do not have the caches of the resolvers of the lab
			}
			rep := labReport(t, env, words)
			found(t, d, rep)
			failed := make([]failures, len(env.Recursors))
			var all sync.WaitGroup
			for i, r := range env.Recursors {
				all.Go(func() { failed[i] = askAll(t.Context(), r, dns.Fqdn(rep.Target.String()), words) })
			}
			all.Wait()
			referee(t, env, rep, failed)
		})
	}
}

// found checks that the report is about the lab: otherwise it has no verdict, and contradicts nobody.
func found(t *testing.T, d lab.Domain, rep *report.Report) {
	t.Helper()
	if d.Wrong == "" && rep.Verdict != report.Working {
		t.Errorf("nothing is wrong, and we say %s", rep.Summary)
	}
	if strings.Contains(d.Try, " compare ") {
		return
	}
	for _, id := range d.Finds {
		if !slices.ContainsFunc(rep.Findings, func(f explain.Finding) bool {
			return f.ID == id && f.Status == explain.Fail
		}) {
			t.Errorf("%s does not fail: %s", id, rep.Summary)
		}
	}
}

// labReport runs a command of the lab.
func labReport(t *testing.T, env *real.Environment, words []string) *report.Report {
	t.Helper()
	out, _ := run(t, append(slices.Clone(words), "--lab="+env.LabDir(), "-o", "json")...)
	r := new(report.Report)
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatalf("nameplane %v: %v\n%s", words, err, out)
	}
	return r
}

// referee compares a report with the recursors.
func referee(t *testing.T, env *real.Environment, rep *report.Report, all []failures) {
	t.Helper()
	critical, failed := severe(rep, explain.Critical), 0
	for i, r := range env.Recursors {
		o := all[i]
		if len(o.servfail)+len(o.other) > 0 {
			failed++
			t.Logf("%s: SERVFAIL for %v, other failures %v", r.Name, o.servfail, o.other)
		}
		if len(o.servfail) > 0 && (r.Name == "unbound" || r.Name == "bind") && rep.Verdict == report.Working {
			t.Errorf("%s replies SERVFAIL for %v, and we say %s\n%s", r.Name, o.servfail, rep.Summary, texts(rep))
		}
	}
	if failed == 0 && len(critical) > 0 {
		t.Errorf("all resolvers succeed, and we say %s\n%s", rep.Summary, texts(rep))
	}
}

// askAll asks a recursor the questions that a command is about. For a scan these are the usual types at the apex, those
// of DNSSEC, and a name that does not exist. Nobody asks for the keys of a zone without a DS. For an analysis these are
// the types of the command, and one of them must have records.
func askAll(ctx context.Context, r real.Recursor, name string, words []string) (o failures) {
	if words[0] == "scan" {
		for _, typ := range []uint16{dns.TypeSOA, dns.TypeNS, dns.TypeA, dns.TypeAAAA, dns.TypeMX, dns.TypeTXT} {
			o.ask(ctx, r, name, typ, dns.RcodeSuccess)
		}
		if o.ask(ctx, r, name, dns.TypeDS, dns.RcodeSuccess) > 0 {
			o.ask(ctx, r, name, dns.TypeDNSKEY, dns.RcodeSuccess)
		}
		o.ask(ctx, r, "nameplane-referee."+name, dns.TypeA, dns.RcodeNameError)
		return o
	}
	var types []uint16
	for _, w := range words[2:] {
		if typ, ok := dns.StringToType[w]; ok {
			types = append(types, typ)
		}
	}
	if len(types) == 0 {
		types = []uint16{dns.TypeA, dns.TypeAAAA}
	}
	records := 0
	for _, typ := range types {
		records += o.ask(ctx, r, name, typ, dns.RcodeSuccess)
	}
	if records == 0 {
		o.other = append(o.other, "no records")
	}
	return o
}

// tries is how often a recursor is asked until it does not fail: lossy.test loses packets.
const tries = 3

// ask asks one question, records a failure, and returns the number of records of the type.
func (o *failures) ask(ctx context.Context, r real.Recursor, name string, typ uint16, want int) int {
	question := name + " " + dns.TypeToString[typ]
	for try := 1; ; try++ {
		m, err := real.Ask(ctx, r.Addr, name, typ, true)
		switch {
		case err == nil && m.Rcode == want:
			return len(real.Data(m, typ))
		case try < tries && (err != nil || m.Rcode == dns.RcodeServerFailure):
			time.Sleep(time.Second) // resolvers cache a failure, most of them longer than this
			continue
		case err != nil:
			o.other = append(o.other, question+": "+err.Error())
		case m.Rcode == dns.RcodeServerFailure:
			o.servfail = append(o.servfail, question)
		default:
			o.other = append(o.other, question+": "+dns.RcodeToString[m.Rcode])
		}
		return 0
	}
}
