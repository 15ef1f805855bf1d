package designate

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of a page. They are the defaults of Designate.
const (
	defaultLimit = 20
	maxLimit     = 1000
)

// query holds the parameters of a list request.
type query struct {
	limit   int
	marker  string // the id of the last item on the previous page; "" for the first page
	sortKey string
	desc    bool
	filters map[string]string
	count   bool // the total is wanted
}

// control lists the query parameters of lists that are not filters.
var control = []string{"limit", "marker", "sort_key", "sort_dir", "all_projects", "all_tenants", "edit_managed_records"}

// list reads the query of a list with the given filters and sort keys. The first sort key is the default. The error
// types are those of Designate. An unknown parameter is refused, because a filter that is ignored returns too much.
func (c *call) list(filters, sortKeys []string) (query, error) {
	values := c.r.URL.Query()
	q := query{limit: defaultLimit, sortKey: sortKeys[0], filters: map[string]string{}, count: !c.scope.hideCounts}
	if err := q.readFilters(values, filters); err != nil {
		return q, err
	}
	var err error
	if s := values.Get("limit"); values.Has("limit") {
		if q.limit, err = parseLimit(s); err != nil {
			return q, err
		}
	}
	if values.Has("marker") {
		id, ok := parseID(values.Get("marker"))
		if !ok {
			return q, refuse("invalid_marker", "%q is not the id of an item", values.Get("marker"))
		}
		q.marker = id.String()
	}
	if s := values.Get("sort_key"); values.Has("sort_key") {
		if !slices.Contains(sortKeys, s) {
			return q, refuse("invalid_sort_key", "sort key must be one of ['%s']", strings.Join(sortKeys, "', '"))
		}
		q.sortKey = s
	}
	switch s := strings.ToLower(values.Get("sort_dir")); {
	case !values.Has("sort_dir") || s == "asc":
	case s == "desc":
		q.desc = true
	default:
		return q, refuse("invalid_sort_dir", "Unknown sort direction, must be 'desc' or 'asc'")
	}
	return q, nil
}

// parseLimit returns the size of a page. It accepts "max", as Designate does, and reduces a number above maxLimit.
func parseLimit(s string) (int, error) {
	if strings.EqualFold(s, "max") {
		return maxLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0, refuse("invalid_limit", "limit should be an integer between 1 and %d", maxLimit)
	}
	return min(n, maxLimit), nil
}

func (q *query) readFilters(values url.Values, filters []string) error {
	var unknown, twice []string
	for key, v := range values {
		switch {
		case slices.Contains(control, key):
		case !slices.Contains(filters, key):
			unknown = append(unknown, key)
		default:
			q.filters[key] = v[0]
		}
		if len(v) > 1 {
			twice = append(twice, key)
		}
	}
	slices.Sort(unknown)
	slices.Sort(twice)
	if twice != nil {
		return badRequest("Duplicate filters %s", strings.Join(twice, ", "))
	}
	if unknown != nil {
		return badRequest("Invalid filters %s", strings.Join(unknown, ", "))
	}
	return nil
}

// glob reports whether s matches the pattern, in which * matches any number of characters.
func glob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, p := range parts[:len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, last)
}
