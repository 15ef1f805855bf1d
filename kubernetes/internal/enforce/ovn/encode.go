package ovn

import "github.com/ovn-kubernetes/libovsdb/ovsdb"

// operations converts ops to OVSDB operations.
func operations(ops []Op) []ovsdb.Operation {
	out := make([]ovsdb.Operation, 0, len(ops)+2)
	for _, op := range ops {
		o := ovsdb.Operation{Table: op.Table}
		if op.Verb != Insert {
			o.Where = []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: op.Row})}
		}
		switch op.Verb {
		case Insert:
			o.Op, o.UUIDName, o.Row = ovsdb.OperationInsert, op.Row, columns(op.Columns)
		case Update:
			o.Op, o.Row = ovsdb.OperationUpdate, columns(op.Columns)
		case Delete:
			o.Op = ovsdb.OperationDelete
		case Add:
			o.Op = ovsdb.OperationMutate
			o.Mutations = []ovsdb.Mutation{*ovsdb.NewMutation(op.Column, ovsdb.MutateOperationInsert, set(op.Column, op.Values))}
		case Remove:
			o.Op = ovsdb.OperationMutate
			o.Mutations = []ovsdb.Mutation{*ovsdb.NewMutation(op.Column, ovsdb.MutateOperationDelete, set(op.Column, op.Values))}
		}
		out = append(out, o)
	}
	return out
}

// optional lists the columns that are empty or contain a string.
var optional = map[string]bool{"severity": true, "meter": true}

// references lists the columns that contain references to rows.
var references = map[string]bool{"ports": true, "acls": true}

func columns(in map[string]any) ovsdb.Row {
	out := ovsdb.Row{}
	for name, v := range in {
		out[name] = v
		switch v := v.(type) {
		case []string:
			out[name] = set(name, v)
		case map[string]string:
			m := ovsdb.OvsMap{GoMap: map[any]any{}}
			for key, value := range v {
				m.GoMap[key] = value
			}
			out[name] = m
		case string:
			if v == "" && optional[name] {
				out[name] = ovsdb.OvsSet{GoSet: []any{}}
			}
		}
	}
	return out
}

func set(column string, in []string) ovsdb.OvsSet {
	out := ovsdb.OvsSet{GoSet: make([]any, len(in))}
	for i, s := range in {
		out.GoSet[i] = s
		if references[column] {
			out.GoSet[i] = ovsdb.UUID{GoUUID: s}
		}
	}
	return out
}
