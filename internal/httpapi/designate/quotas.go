package designate

import (
	"cmp"
	"errors"
	"maps"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// quotaKeys are the names of the quotas in JSON. All but aliases are Designate's.
var quotaKeys = []string{"zones", "zone_recordsets", "zone_records", "recordset_records", "api_export_size", "aliases"}

// quotaProject returns the project of the path. Only an administrator who acts for all projects may read or change the
// quotas of another project.
func (c *call) quotaProject() (string, error) {
	p := cmp.Or(c.r.PathValue("project_id"), c.scope.project)
	if p != c.scope.project && !c.scope.all {
		return p, forbidden("Quotas of another project need an administrator and the header X-Auth-All-Projects.")
	}
	return p, nil
}

func (c *call) showQuotas() (reply, error) {
	project, err := c.quotaProject()
	if err != nil {
		return reply{}, err
	}
	q, err := viewed(c, func(v store.View) (publish.Quotas, error) { return c.api.Publisher.QuotasOf(v, project) })
	return ok(q), err
}

func (c *call) updateQuotas() (reply, error) {
	project, err := c.quotaProject()
	if err != nil {
		return reply{}, err
	}
	in, err := c.input("quota", quotaKeys...)
	if err != nil {
		return reply{}, err
	}
	set, err := readQuotas(in)
	if err != nil {
		return reply{}, err
	}
	if c.api.HasProject != nil && !c.api.HasProject(project) {
		return reply{}, refuse("invalid_project", "%s is not a valid project ID.", project)
	}
	err = c.commit(func(tx *publish.Tx) error { return putQuotas(tx, project, set) })
	if err != nil {
		return reply{}, err
	}
	return c.showQuotas()
}

// readQuotas reads the quotas in the body. -1 means no limit.
func readQuotas(in *input) (map[string]int, error) {
	set := map[string]int{}
	for _, key := range quotaKeys {
		if in.isNull(key) {
			in.note(key, "None is not of type 'integer'", "type", "integer")
		}
		if n := in.number(key, -1, 2147483647); n != nil {
			set[key] = int(*n)
		}
	}
	return set, in.err()
}

// putQuotas stores only quotas that were set: the others follow the configuration of the server.
func putQuotas(tx *publish.Tx, project string, set map[string]int) error {
	own := map[string]int{}
	if err := tx.Object(store.KindQuota, project, &own); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	maps.Copy(own, set)
	return tx.PutObject(store.KindQuota, project, own)
}

// deleteQuotas gives a project the default quotas. As in Designate an administrator may do so for every project.
func (c *call) deleteQuotas() (reply, error) {
	project := c.r.PathValue("project_id")
	err := c.commit(func(tx *publish.Tx) error {
		if err := tx.DeleteObject(store.KindQuota, project); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return nil
	})
	return noContent, err
}

// showLimits returns the project's quotas under the names of Designate's limits API, and the fixed limits.
func (c *call) showLimits() (reply, error) {
	q, err := viewed(c, func(v store.View) (publish.Quotas, error) {
		return c.api.Publisher.QuotasOf(v, c.scope.project)
	})
	return ok(map[string]any{
		"max_page_limit": maxLimit, "max_recordset_name_length": 255, "max_recordset_records": q.RecordsetRecords,
		"max_zone_name_length": 255, "max_zone_records": q.ZoneRecords, "max_zone_recordsets": q.ZoneRecordsets,
		"max_zones": q.Zones, "min_ttl": c.settings.MinTTL,
	}), err
}
