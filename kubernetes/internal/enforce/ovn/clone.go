package ovn

import (
	"maps"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"
)

// libovsdb copies each row that it changes or returns. It copies through JSON unless the row implements CloneModel.
// That used most of the agent's CPU time, partly while a DNS reply waited for a new address.

func (r *globalRow) CloneModel() model.Model { c := *r; return &c }

func (r *setRow) CloneModel() model.Model {
	c := *r
	c.Addresses, c.ExternalIDs = slices.Clone(r.Addresses), maps.Clone(r.ExternalIDs)
	return &c
}

func (r *groupRow) CloneModel() model.Model {
	c := *r
	c.Ports, c.ACLs, c.ExternalIDs = slices.Clone(r.Ports), slices.Clone(r.ACLs), maps.Clone(r.ExternalIDs)
	return &c
}

func (r *aclRow) CloneModel() model.Model {
	c := *r
	c.Name, c.Severity, c.Meter = clone(r.Name), clone(r.Severity), clone(r.Meter)
	c.Options, c.ExternalIDs = maps.Clone(r.Options), maps.Clone(r.ExternalIDs)
	return &c
}

func (r *tierRow) CloneModel() model.Model {
	c := *r
	c.Name, c.Severity, c.Meter = clone(r.Name), clone(r.Severity), clone(r.Meter)
	c.Options, c.ExternalIDs = maps.Clone(r.Options), maps.Clone(r.ExternalIDs)
	return &c
}

func (r *portRow) CloneModel() model.Model {
	c := *r
	c.ExternalIDs = maps.Clone(r.ExternalIDs)
	return &c
}

func (r *vswitchRow) CloneModel() model.Model {
	c := *r
	c.ExternalIDs = maps.Clone(r.ExternalIDs)
	return &c
}

func (r *bridgeRow) CloneModel() model.Model {
	c := *r
	c.ExternalIDs = maps.Clone(r.ExternalIDs)
	return &c
}

func (r *globalRow) CloneModelInto(m model.Model)  { *m.(*globalRow) = *r.CloneModel().(*globalRow) }
func (r *setRow) CloneModelInto(m model.Model)     { *m.(*setRow) = *r.CloneModel().(*setRow) }
func (r *groupRow) CloneModelInto(m model.Model)   { *m.(*groupRow) = *r.CloneModel().(*groupRow) }
func (r *aclRow) CloneModelInto(m model.Model)     { *m.(*aclRow) = *r.CloneModel().(*aclRow) }
func (r *tierRow) CloneModelInto(m model.Model)    { *m.(*tierRow) = *r.CloneModel().(*tierRow) }
func (r *portRow) CloneModelInto(m model.Model)    { *m.(*portRow) = *r.CloneModel().(*portRow) }
func (r *vswitchRow) CloneModelInto(m model.Model) { *m.(*vswitchRow) = *r.CloneModel().(*vswitchRow) }
func (r *bridgeRow) CloneModelInto(m model.Model)  { *m.(*bridgeRow) = *r.CloneModel().(*bridgeRow) }

func clone(s *string) *string {
	if s == nil {
		return nil
	}
	return new(*s)
}
