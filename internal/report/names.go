package report

import (
	"regexp"
	"slosim/sim"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text from an experiment safe for one line anywhere: control
// characters and bidirectional overrides become spaces. What it means inside
// HTML, JSON or Markdown is for their encoders.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || isBidiControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s))
}

func isBidiControl(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// short cuts a cleaned name to n characters, for labels inside charts.
func short(s string, n int) string {
	s = clean(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)[:n-1]
	for len(r) > 0 && isJoiner(r[len(r)-1]) {
		r = r[:len(r)-1]
	}
	return strings.TrimSpace(string(r)) + "…"
}

var unitAfterNumber = regexp.MustCompile(`(\d) (%|s|ms|h|d|min|MHz|W|°C|kWh|GiB|GB|tokens|requests|replications?|bad)\b|(\d) (%|°C)`)
var interval = regexp.MustCompile(` \[[^\[\] ]{1,16}, [^\[\] ]{1,16}[\])]`)

// unbroken keeps numbers with their units and intervals on one line, for prose
// on the page.
func unbroken(s string) string {
	bind := func(m string) string { return strings.ReplaceAll(m, " ", "\u00a0") }
	return interval.ReplaceAllStringFunc(unitAfterNumber.ReplaceAllStringFunc(s, bind), bind)
}

// sentence begins text with a capital and ends it with a full stop.
func sentence(text string) string { return capital(ended(text)) }

// ended puts one full stop at the end of a text that has no other end; "" stays.
func ended(text string) string {
	text = strings.TrimRight(clean(text), ". ")
	if end, _ := utf8.DecodeLastRuneInString(text); text == "" || strings.ContainsRune("!?…", end) {
		return text
	}
	return text + "."
}

// capital puts a capital at the start of a text that begins with an ASCII letter.
func capital(text string) string {
	if text != "" && text[0] >= 'a' && text[0] <= 'z' {
		return string(text[0]-'a'+'A') + text[1:]
	}
	return text
}

// isJoiner reports runes that must not end a cut: they bind to what follows.
func isJoiner(r rune) bool { return r == '\u200D' || r == '\uFE0F' }

// width is how many terminal cells s takes: wide East Asian characters and
// emoji take two, combining marks and joiners none.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || isJoiner(r):
		return 0
	case r >= 0x1100 && r <= 0x115F, r >= 0x2E80 && r <= 0xA4CF, r >= 0xAC00 && r <= 0xD7A3,
		r >= 0xF900 && r <= 0xFAFF, r >= 0xFE30 && r <= 0xFE6F, r >= 0xFF00 && r <= 0xFF60,
		r >= 0x1F300 && r <= 0x1FAFF, r >= 0x20000 && r <= 0x3FFFD:
		return 2
	}
	return 1
}

// fit cuts s to at most n terminal cells.
func fit(s string, n int) string {
	if width(s) <= n {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		w := runeWidth(r)
		if used+w > n-1 {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + "…"
}

// plural writes "1 alert" or "3 alerts".
func plural[T int | int64](n T, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// blame says whose requests miss and where their time goes; where several
// objectives are missed, of which one that is said.
func (s *story) blame() string {
	text := sentence(s.focus.BlameText)
	missed := 0
	for i := range s.r.SLOs {
		if s.r.SLOs[i].Bad > 0 && s.r.SLOs[i].Status != sim.Met {
			missed++
		}
	}
	if text == "" || missed < 2 {
		return text
	}
	return clean(s.focus.Name) + ": " + text
}
