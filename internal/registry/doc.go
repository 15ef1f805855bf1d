// Package registry asks domain registries about registrations: RDAP first, WHOIS where that is missing or fails.
package registry
