package rr

// For the tests that compare the fast way with the library's.
var (
	ParsePlain = parsePlain
	ParseOther = parseOther
	PlainText  = plainText
	OtherText  = otherText
	Unpack     = unpack
)
