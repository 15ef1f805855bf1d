package registry

import (
	"slices"
	"strings"
)

// Patterns for lines that say that there is no registration, that the server refuses to answer now, and that the name
// cannot be registered. They are matched against single lines in lower case, in which <d> stands for the domain. Only
// texts without data are matched, because terms of use have the same words.
var (
	freeLine = lazy(`^(` + strings.Join([]string{
		`no match`, `no_match`, `not found`, `no entries found`, `error:101: no entries found`, `no data found`, `no found`,
		`nothing found`,
		`no (such|matching) (domain|record|object)`, `no objects? found`,
		`domain( name)?( "?<d>"?)?:? not (found|registered)`,
		`(the )?(queried |requested )?(object|domain)( name)? ` +
			`(does not exist|was not found|has not been registered|is not registered)`,
		`object_not_found`, `no_se_encontro_el_objeto`, `we do not have an entry in our database matching your query`,
		`(status|domain status|registration status|query_status):\s*` +
			`(220 )?(free|available|not registered|no object found)\s*$`,
		`no information (available )?about domain( name)? "?<d>`,
		`(the domain |domain )?["'\[(]?<d>["'\])]?:? (-\s+)?(is |was |has )?` +
			`(free|available|not found|not registered|not been registered|no match|no existe|does not exist)`,
		`el dominio no se encuentra registrado`, `the domain has not been registered`, `available$`, `domain unknown`,
		`this domain name has not been registered`,
	}, `|`) + `)`)
	busyLine = lazy(strings.Join([]string{
		`(quota|limit|rate|number of allowed queries|queries|requests)( has been| was| is)? (exceeded|reached)`,
		`too many (requests|queries|connections)`,
		`exceeded (the |your )?(maximum|query|allowed|quota|limit|daily)`, `(query|request|access) (denied|refused|rate)`,
		`access control`,
		`try again (later|after|in )`, `blacklisted`, `(has been|are|is) (temporarily )?(blocked|denied|banned)`,
		`connection refused`,
		`temporarily unavailable`, `server (is )?(busy|too busy)`, `internal (server )?error`,
	}, `|`))
	reservedLine = lazy(`^((domain )?status:\s*` +
		`(reserved|not allowed|invalid|blocked|restricted|unavailable|premium|withheld)|` +
		`(this|the) (domain )?name (is|has been) (reserved|restricted|blocked)|reserved (domain )?name|` +
		`this domain cannot be registered|<d> (is reserved|cannot be registered|is not available for registration))`)
)

// judge classifies a text. Data counts more than phrases.
func (r *whoisReply) judge(text, domain string) verdict {
	about := r.name == "" || r.name == domain
	signals := r.signals()
	lines := judgedLines(text, domain)
	switch {
	case signals > 0 && !about:
		return isOther
	case signals >= 2, signals == 1 && r.name == domain:
		if slices.ContainsFunc(lines, reservedLine().MatchString) && r.Registrar.Name == "" && r.Dates == (Dates{}) {
			return isReserved
		}
		return isFound
	case slices.ContainsFunc(lines, busyLine().MatchString): // before free: a refusal must never count as free
		return isBusy
	case slices.ContainsFunc(lines, reservedLine().MatchString):
		return isReserved
	case slices.ContainsFunc(lines, freeLine().MatchString):
		return isFree
	case r.referral != "":
		return isReferral
	}
	return isUnclear
}

// signals counts the kinds of data that only a registered domain has. Only EPP statuses count, because "free" is a
// status too.
func (r *whoisReply) signals() (n int) {
	known := slices.ContainsFunc(r.Statuses, func(s Status) bool {
		return statusTexts[s.Code] != "" && s.Code != "reserved"
	})
	for _, yes := range []bool{r.Registrar.Name != "", r.Dates != (Dates{}), len(r.Nameservers) > 0, known} {
		if yes {
			n++
		}
	}
	return n
}

// judgedLines returns the lines of a text in lower case, without comment characters, and with <d> instead of the
// domain.
func judgedLines(text, domain string) []string {
	text = strings.ToLower(cut(text, maxText))
	text = strings.ReplaceAll(text, strings.TrimSuffix(domain, "."), "<d>")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(strings.Trim(l, "%#>*-;!. \t\r")), " ")
	}
	return lines
}

// confidence says how reliable the interpretation is. It is high if the text names the domain and has most kinds of
// data.
func (r *whoisReply) confidence(domain string) string {
	named := r.name == domain
	switch signals := r.signals(); {
	case r.verdict == isFree && signals == 0:
		return "high"
	case r.verdict != isFound:
		return "low"
	case named && signals >= 3:
		return "high"
	case named && signals >= 2, signals >= 3:
		return "medium"
	}
	return "low"
}
