package main

import (
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

func TestWatchReached(t *testing.T) {
	name := explain.Name{Name: dnsname.MustParse("www.example.org")}
	facts := func(results ...iterate.Class) *explain.Facts {
		f := &explain.Facts{Kind: explain.Compare, Name: name}
		for _, r := range results {
			f.Outcomes = append(f.Outcomes, explain.Outcome{Type: explain.Type{Type: rr.TypeA}, Result: r})
		}
		return f
	}
	past, future := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), time.Date(2999, 1, 1, 12, 0, 0, 0, time.UTC)
	of := func(safe time.Time, verdict safeat.Verdict, caches ...report.CacheLine) *report.Report {
		return &report.Report{Target: name, SafeAt: safe, Safe: &safeat.Report{Verdict: verdict}, Caches: caches}
	}
	old := report.CacheLine{Resolver: "Aland", State: safeat.Old}
	uncounted := report.CacheLine{Resolver: "Borland", State: safeat.Old, NoVote: true}
	stale := report.CacheLine{Resolver: "Cuba", State: safeat.Stale}
	for _, test := range []struct {
		what, until string
		facts       *explain.Facts
		report      *report.Report
		words       string
		reached     bool
	}{
		{"the authority was not asked", "safe", facts(iterate.Unknown), of(past, safeat.Safe), "not yet at the authority: its servers could not be asked", false},
		{"it does not exist", "authoritative", facts(iterate.NXDomain), of(past, safeat.Safe), "not yet at the authority: there are no such records of www.example.org", false},
		{"it is there", "authoritative", facts(iterate.Answer), of(future, safeat.Soon, old), "www.example.org is as wanted at every server of its zone", true},
		{"a resolver is late", "safe", facts(iterate.Answer), of(future, safeat.Soon, old), "late: Aland; safe at 2999-01-01 12:00:00 UTC", false},
		{"one cannot reach the servers", "safe", facts(iterate.Answer), of(past, safeat.CannotTell, stale), "late: Cuba; when it is safe cannot be told", false},
		{"others may be late", "safe", facts(iterate.Answer), of(future, safeat.Soon), "no resolver that was asked is late; all others are safe at 2999-01-01 12:00:00 UTC", false},
		{"one is late that is not counted", "safe", facts(iterate.Answer), of(past, safeat.Safe, uncounted), "www.example.org is safe: everyone sees the new answer", true},
	} {
		v := vigil{until: test.until}
		if words, ok := v.reached(test.facts, test.report); words != test.words || ok != test.reached {
			t.Errorf("%s: %q, %v; want %q, %v", test.what, words, ok, test.words, test.reached)
		}
	}
}
