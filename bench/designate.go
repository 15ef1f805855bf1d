package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

// designate is a client of the zones API with the calls that changing a record needs.
type designate struct {
	base, token string
	http        http.Client
}

// newDesignate keeps a connection for every writer. The default of two would measure how fast connections are opened.
func newDesignate(base, token string, writers int) *designate {
	return &designate{base: base, token: token, http: http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: writers, MaxConnsPerHost: writers},
	}}
}

// designateOf returns a client with the admin token, which no quota limits.
func designateOf(s *peers.Server, writers int) (*designate, error) {
	token, err := s.Token()
	return newDesignate(s.HTTP, token, writers), err
}

// call is for the preparation. Changes that are measured go through rest_direct.go, because net/http takes more CPU
// than the server.
func (d *designate) call(method, address string, body, reply any) error {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, address, payload)
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", d.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body) // read to the end, or the connection is not reused
	if err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s %s: %s %s", method, req.URL.Path, res.Status, text)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(text, reply)
}

// recordset is a set of addresses that can be changed.
type recordset struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	zone string // id of its zone
}

// addressSets returns n record sets of type A in the zone.
func (d *designate) addressSets(zone string, n int) ([]recordset, error) {
	var zones struct {
		Zones []struct {
			ID string `json:"id"`
		} `json:"zones"`
	}
	if err := d.call(http.MethodGet, d.base+"/v2/zones?name="+url.QueryEscape(zone), nil, &zones); err != nil {
		return nil, err
	}
	if len(zones.Zones) != 1 {
		return nil, fmt.Errorf("%d zones are named %s, want one", len(zones.Zones), zone)
	}
	id := zones.Zones[0].ID
	next := fmt.Sprintf("%s/v2/zones/%s/recordsets?type=A&limit=1000", d.base, id)
	var found []recordset
	for next != "" && len(found) < n {
		var page struct {
			Sets  []recordset `json:"recordsets"`
			Links struct {
				Next string `json:"next"`
			} `json:"links"`
		}
		if err := d.call(http.MethodGet, next, nil, &page); err != nil {
			return nil, err
		}
		for _, set := range page.Sets {
			set.zone = id
			found = append(found, set)
		}
		next = page.Links.Next
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no record sets of type A", zone)
	}
	return found[:min(n, len(found))], nil
}

// batch returns the body that replaces the addresses of count sets, beginning with number first, in one transaction.
func batch(sets []recordset, first, count int) any {
	type change struct {
		Action  string   `json:"action"`
		Name    string   `json:"name"`
		Type    string   `json:"type"`
		Records []string `json:"records"`
	}
	list := make([]change, count)
	for i := range list {
		n := first + i
		list[i] = change{"upsert", sets[n%len(sets)].Name, "A", []string{newAddress(n)}}
	}
	return map[string]any{"changes": list}
}
