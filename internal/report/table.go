package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// textTable is a table for a terminal. When it is too wide, whole columns are
// left out, those with the highest Drop first.
type textTable struct {
	columns []textColumn
	rows    [][]string
}

type textColumn struct {
	head string
	left bool // alignment
	drop int  // 0 = always shown
}

const columnGap = 2

func (t *textTable) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table within the given width, indented by two; paint colours
// a cell after it has been aligned.
func (t *textTable) write(w io.Writer, width int, paint func(row, col int, text string) string) {
	widths := t.widths()
	shown := t.fitting(widths, width-2)
	t.writeRow(w, -1, shown, widths, paint)
	for i := range t.rows {
		t.writeRow(w, i, shown, widths, paint)
	}
}

func (t *textTable) widths() []int {
	out := make([]int, len(t.columns))
	for c, col := range t.columns {
		out[c] = width(col.head)
		for _, row := range t.rows {
			out[c] = max(out[c], width(row[c]))
		}
	}
	return out
}

// fitting picks the columns that fit, and narrows the widest ones if even the
// columns that are always shown are too wide.
func (t *textTable) fitting(widths []int, room int) []int {
	dropped := make([]bool, len(t.columns))
	for {
		var shown []int
		total, worst := 0, -1
		for c, col := range t.columns {
			if dropped[c] {
				continue
			}
			shown = append(shown, c)
			total += widths[c] + columnGap
			if col.drop > 0 && (worst < 0 || col.drop > t.columns[worst].drop) {
				worst = c
			}
		}
		if over := total - columnGap - room; over <= 0 || worst < 0 {
			narrow(widths, shown, over)
			return shown
		}
		dropped[worst] = true
	}
}

// narrow takes cells away from the widest of the shown columns, one by one.
func narrow(widths, shown []int, over int) {
	for ; over > 0; over-- {
		widest := shown[0]
		for _, c := range shown {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		widths[widest]--
	}
}

// writeRow prints a row; -1 is the head.
func (t *textTable) writeRow(w io.Writer, row int, shown, widths []int, paint func(int, int, string) string) {
	var b strings.Builder
	b.WriteString("  ")
	for i, c := range shown {
		text := t.columns[c].head
		if row >= 0 {
			text = t.rows[row][c]
		}
		text = fit(text, widths[c])
		pad := strings.Repeat(" ", widths[c]-width(text))
		if t.columns[c].left {
			if i == len(shown)-1 {
				pad = ""
			}
			text = paint(row, c, text) + pad
		} else {
			text = pad + paint(row, c, text)
		}
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		b.WriteString(text)
	}
	fmt.Fprintln(w, b.String())
}

// wrap breaks text at spaces into lines of at most n cells, and words that are
// longer than a line wherever they reach its end. Numbers stay with their units.
func wrap(text string, n int) []string {
	n = max(8, n)
	var lines []string
	current := ""
	const bound = '\u00a0'
	breaks := func(r rune) bool { return unicode.IsSpace(r) && r != bound }
	for _, word := range strings.FieldsFunc(unbroken(text), breaks) {
		word = strings.ReplaceAll(word, string(bound), " ")
		for width(word) > n {
			if current != "" {
				lines = append(lines, current)
				current = ""
			}
			head := strings.TrimSuffix(fit(word, n+1), "…")
			if head == "" {
				break
			}
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case current == "":
			current = word
		case width(current)+1+width(word) <= n:
			current += " " + word
		default:
			lines = append(lines, current)
			current = word
		}
	}
	if current != "" {
		lines = append(lines, current)
	}
	return lines
}
