package zonefile

import (
	"bytes"
	"fmt"

	"github.com/nameplane/nameplane/internal/rr"
)

// ALIAS is not a DNS record type, so a zone file has it in a comment, above the addresses that were derived from it:
//
//	; example.org. 300 IN ALIAS cdn.example.net.
//	@ 60 IN A 192.0.2.1
//
// A program that does not know the comment reads a valid zone. Options.ReviveAlias reads the comment.

// writeAlias writes the comment of an ALIAS, with absolute names for human readers.
func (o *writer) writeAlias(set rr.Set) error {
	for _, d := range set.Data {
		if _, err := fmt.Fprintf(o.w, "; %s %d IN ALIAS %s\n", set.Name, set.TTL, rr.DataText(set.Type, d)); err != nil {
			return err
		}
	}
	return nil
}

// aliasComment returns the record in the comment of an ALIAS: an owner, an optional TTL and class, the type, and one
// name. It returns nil for other lines. Other comments that contain the word ALIAS stay comments.
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
