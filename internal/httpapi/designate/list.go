package designate

import (
	"bytes"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// listing defines how a kind of items is filtered and sorted. Items with equal sort keys keep the order of the input,
// oldest first.
type listing[T any] struct {
	name    string // key of the list in the reply
	id      func(T) string
	filters map[string]func(T) string
	sorts   map[string]func(a, b T) int
	keys    []string // of sorts; the first is the default
}

// page is a part of a list.
type page[T any] struct {
	items []T
	more  bool // there are items after these
	total int
}

func (l listing[T]) query(c *call) (query, error) {
	names := make([]string, 0, len(l.filters))
	for k := range l.filters {
		names = append(names, k)
	}
	return c.list(names, l.keys)
}

// cut filters and sorts all items and returns the requested page. Filters ignore case, as the databases of Designate
// do.
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
		sort.SliceStable(items, func(i, j int) bool { return less(items[i], items[j]) < 0 })
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
	return refuse("marker_not_found", "There is no item %s in this list", id)
}

// reply returns a page as a reply; show converts an item. There is a link to the next page only when it has items.
func (l listing[T]) reply(c *call, q query, p page[T], show func(T) any) reply {
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

// collection returns a list as a reply; next is the marker of the next page, or "".
func (c *call) collection(name string, items any, next string, total int) reply {
	links := links{Self: c.pageURL("")}
	if next != "" {
		links.Next = c.pageURL(next)
	}
	body := map[string]any{name: items, "links": links}
	if !c.scope.hideCounts {
		body["metadata"] = listMetadata{total}
	}
	return ok(body)
}

// pageURL returns the address of this request, or of the page after marker.
func (c *call) pageURL(marker string) string {
	values := c.r.URL.Query()
	if marker != "" {
		values.Set("marker", marker)
	}
	u := c.url(c.r.URL.EscapedPath())
	if len(values) > 0 {
		u += "?" + values.Encode()
	}
	return u
}

// listOne returns the list of a kind of which there is exactly one item.
func listOne[T any](c *call, l listing[T], item T) (reply, error) {
	q, err := l.query(c)
	if err != nil {
		return reply{}, err
	}
	p, err := l.cut([]T{item}, q)
	return l.reply(c, q, p, func(item T) any { return item }), err
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
