package rr

// Exported for tests that compare the fast functions with the library.
var (
	ParsePlain = parsePlain
	ParseOther = parseOther
	PlainText  = plainText
	OtherText  = otherText
	Unpack     = unpack
)
