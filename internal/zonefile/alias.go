package zonefile

import (
	"bytes"
	"fmt"

	"github.com/nameplane/nameplane/internal/rr"
)

// An ALIAS is no record of the DNS, so a zone file has it in a comment, above the addresses that were made of it:
//
//	; example.org. 300 IN ALIAS cdn.example.net.
//	@ 60 IN A 192.0.2.1
//
// Whoever does not know the comment has a valid zone. Options.ReviveAlias reads it.

// writeAlias writes the comment of an ALIAS, with whole names, because it may be read by people.
func (o *writer) writeAlias(set rr.Set) error {
	for _, d := range set.Data {
		if _, err := fmt.Fprintf(o.w, "; %s %d IN ALIAS %s\n", set.Name, set.TTL, rr.DataText(set.Type, d)); err != nil {
			return err
		}
	}
	return nil
}

// aliasComment is the record in a line that is the comment of an ALIAS: an owner, a TTL and a class that may be missing, the
// type, and one name; else nil. Other comments that have the word ALIAS in them stay comments.
func aliasComment(line []byte) []byte {
	text := bytes.TrimLeft(bytes.TrimPrefix(line, []byte(";")), " \t")
	words := bytes.Fields(text)
	at := 1
	if at < len(words) && words[at][0] >= '0' && words[at][0] <= '9' {
		at++
	}
	if at < len(words) && isIN(words[at]) {
		at++
	}
	if len(words) != at+2 || !bytes.EqualFold(words[at], []byte("ALIAS")) {
		return nil
	}
	return text
}
