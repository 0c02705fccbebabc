package accuracy

import (
	"strings"
	"unicode/utf8"
)

// align pads the cells of Markdown tables to columns, for a terminal.
func align(text string) string {
	lines := strings.Split(text, "\n")
	for from := 0; from < len(lines); from++ {
		to := from
		for to < len(lines) && strings.HasPrefix(lines[to], "|") {
			to++
		}
		if to-from > 1 {
			pad(lines[from:to])
			from = to
		}
	}
	return strings.Join(lines, "\n")
}

func pad(table []string) {
	rows := make([][]string, len(table))
	var widths []int
	for i, line := range table {
		for k, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cell = strings.TrimSpace(cell)
			if strings.HasPrefix(cell, "---") {
				cell = ""
			}
			rows[i] = append(rows[i], cell)
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range rows {
		var b strings.Builder
		for k, cell := range row {
			if i == 1 {
				cell = strings.Repeat("-", widths[k])
			}
			b.WriteString("  " + cell + strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell)))
		}
		table[i] = strings.TrimRight(b.String(), " ")
	}
}
