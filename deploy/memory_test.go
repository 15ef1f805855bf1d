package deploy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/config"
)

// The memory of a served record without its name and data (docs/bench.md has 81 bytes per name with both), and the
// smallest size of an address record in a zone file.
const (
	servedRecord = 100
	fileRecord   = 34
)

// TestMemoryAgrees compares the memory limits of the unit and the manifest with the quotas and http.max_import of their
// configurations. A project at its quotas may use half of the memory, and an import of the largest size must fit.
func TestMemoryAgrees(t *testing.T) {
	c := manifests(t)
	u := unit(t, string(read(t, "systemd/nameplane.service")))
	for _, tt := range []struct {
		name, config, limit string
	}{
		{"manifest", c.config.Data["nameplane.yaml"], strings.TrimSuffix(c.container(t).Resources.Limits["memory"], "i")},
		{"unit", string(read(t, "systemd/nameplane.yaml")), strings.Join(u["Service.MemoryMax"], " ")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := config.Parse("nameplane.yaml", []byte(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			gib, err := strconv.Atoi(strings.TrimSuffix(tt.limit, "G"))
			if err != nil {
				t.Fatalf("memory limit %q: %v", tt.limit, err)
			}
			limit := int64(gib) << 30 * 9 / 10 // as budget.Limit
			q := cfg.Designate.Quotas.OfProject()
			if q.Zones < 0 || q.ZoneRecords < 0 || q.ZoneRecordsets < 0 || q.RecordsetRecords < 0 {
				t.Fatalf("quotas %+v", q)
			}
			if all := int64(q.Zones) * int64(max(q.ZoneRecords, q.ZoneRecordsets)*servedRecord+q.ZoneBytes()); all > limit/2 {
				t.Errorf("a project at its quotas takes %d bytes, more than half of %d", all, limit)
			}
			b := budget.New(limit)
			if err := b.Fits(budget.ZoneBytes(q.ZoneRecords, int64(q.ZoneBytes()))); err != nil {
				t.Errorf("a zone at its quotas: %v", err)
			}
			records := int(cfg.HTTP.MaxImport / fileRecord)
			if err := b.Fits(budget.ZoneBytes(records, int64(records)*50)); err != nil {
				t.Errorf("a zone file of http.max_import, %d bytes: %v", cfg.HTTP.MaxImport, err)
			}
		})
	}
	if tasks, err := strconv.Atoi(strings.Join(u["Service.TasksMax"], " ")); err != nil || tasks < 64 || tasks > 1024 {
		t.Errorf("TasksMax=%v", u["Service.TasksMax"])
	}
}
