package designate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
)

// listing defines how a kind of items is filtered and sorted. Items with equal sort keys keep the order of the input,
// oldest first.
type listing[T any] struct {
	name    string // key of the list in the reply
	id      func(T) string
	filters map[string]func(T) string
	sorts   map[string]func(a, b T) int
	keys    []string // the keys of sorts; the first is the default
}

// newListing returns the listing of objects. They are sorted by age or id, or by the filters with the given keys.
func newListing[T any, P object[T]](name string, filters map[string]func(T) string, sorts ...string) listing[T] {
	l := listing[T]{
		name:    name,
		id:      func(item T) string { return P(&item).meta().ID },
		filters: filters,
		keys:    append([]string{"created_at", "id", "updated_at"}, sorts...),
	}
	l.sorts = map[string]func(a, b T) int{
		"created_at": byAge(func(item T) timestamp { return P(&item).meta().CreatedAt }),
		"updated_at": byAge(func(item T) timestamp { return P(&item).meta().UpdatedAt }),
		"id":         byText(l.id),
	}
	for _, key := range sorts {
		l.sorts[key] = byText(filters[key])
	}
	return l
}

func byAge[T any](created func(T) timestamp) func(a, b T) int {
	return func(a, b T) int { return time.Time(created(a)).Compare(time.Time(created(b))) }
}

func byText[T any](text func(T) string) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(text(a), text(b)) }
}

// page is a part of a list.
type page[T any] struct {
	items []T
	more  bool // there are items after this page
	total int
}

func (l listing[T]) query(c *call) (query, error) {
	return c.list(slices.Collect(maps.Keys(l.filters)), l.keys)
}

// list returns the requested page of the items that find reads; show completes an item for the reply.
func (l listing[T]) list(c *call, find func(store.View) ([]T, error), show func(*call, T) T) (reply, error) {
	q, err := l.query(c)
	if err != nil {
		return reply{}, err
	}
	items, err := viewed(c, func(v store.View) ([]T, error) {
		items, err := find(v)
		return items, cmp.Or(err, c.need(setMemory(len(items), 0)))
	})
	if err != nil {
		return reply{}, err
	}
	l.sortByAge(items)
	p, err := l.cut(items, q)
	return l.reply(c, p, func(item T) any { return show(c, item) }), err
}

// listFixed returns the list of a kind whose items are not in the store.
func listFixed[T any](c *call, l listing[T], items ...T) (reply, error) {
	return l.list(c, func(store.View) ([]T, error) { return items, nil }, func(_ *call, item T) T { return item })
}

// cut filters and sorts all items and returns the requested page. Filters ignore case, because Designate's databases
// compare text without case.
func (l listing[T]) cut(items []T, q query) (page[T], error) {
	items = slices.DeleteFunc(items, func(item T) bool {
		for key, pattern := range q.filters {
			if !glob(strings.ToLower(pattern), strings.ToLower(l.filters[key](item))) {
				return true
			}
		}
		return false
	})
	if less := l.sorts[q.sortKey]; less != nil {
		slices.SortStableFunc(items, less)
	}
	if q.desc {
		slices.Reverse(items)
	}
	p := page[T]{items: items, total: len(items)}
	if q.marker != "" {
		at := slices.IndexFunc(items, func(item T) bool { return l.id(item) == q.marker })
		if at < 0 {
			return p, markerNotFound(q.marker)
		}
		p.items = items[at+1:]
	}
	if len(p.items) > q.limit {
		p.items, p.more = p.items[:q.limit], true
	}
	return p, nil
}

func markerNotFound(id string) *fault {
	return refuse("marker_not_found", "Marker %s could not be found", id)
}

// reply returns a page as a reply; show converts an item. The reply links to the next page only when that has items.
func (l listing[T]) reply(c *call, p page[T], show func(T) any) reply {
	out := make([]any, 0, len(p.items))
	for _, item := range p.items {
		out = append(out, show(item))
	}
	next := ""
	if p.more {
		next = l.id(p.items[len(p.items)-1])
	}
	return c.collection(l.name, out, next, p.total)
}

// collection returns a list as a reply; next is the marker of the next page, or "". The header
// OpenStack-DNS-Hide-Counts leaves the total out, as in Designate: large lists are faster without it. The metadata is
// then empty.
func (c *call) collection(name string, items any, next string, total int) reply {
	links := links{Self: c.pageURL("")}
	if next != "" {
		links.Next = c.pageURL(next)
	}
	body := collection{name: name, items: items, links: links}
	if !c.scope.hideCounts {
		body.metadata.TotalCount = &total
	}
	return ok(body)
}

// collection is the body of a list.
type collection struct {
	name     string
	items    any
	links    links
	metadata listMetadata
}

// encode writes the members in the order of Designate: the items, the links, the metadata.
func (l collection) encode(b *bytes.Buffer, e *json.Encoder) error {
	before := "{"
	for _, member := range []struct {
		name  string
		value any
	}{{l.name, l.items}, {"links", l.links}, {"metadata", l.metadata}} {
		b.WriteString(before + strconv.Quote(member.name) + ":")
		if err := e.Encode(member.value); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the newline that Encode adds
		before = ","
	}
	b.WriteString("}\n")
	return nil
}

// pageURL returns the address of this request, or of the page after marker. It keeps the order of the parameters; a new
// marker is the last one, as in Designate.
func (c *call) pageURL(marker string) string {
	var params []string
	for param := range strings.SplitSeq(c.r.URL.RawQuery, "&") {
		key, value, _ := strings.Cut(param, "=")
		key, err := url.QueryUnescape(key)
		value, valueErr := url.QueryUnescape(value)
		if param == "" || err != nil || valueErr != nil || marker != "" && key == "marker" {
			continue
		}
		params = append(params, url.QueryEscape(key)+"="+url.QueryEscape(value))
	}
	if marker != "" {
		params = append(params, "marker="+marker)
	}
	u := c.url(c.r.URL.EscapedPath())
	if len(params) > 0 {
		u += "?" + strings.Join(params, "&")
	}
	return u
}

// sortByAge sorts items by the time of their creation.
func (l listing[T]) sortByAge(items []T) {
	if less := l.sorts["created_at"]; less != nil {
		slices.SortStableFunc(items, less)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
