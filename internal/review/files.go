package review

import (
	"slosim/internal/report"
)

// Write puts review.html, review.json, review.md and one TOML per lever into dir.
func (r *Review) Write(dir string) error {
	text, err := report.ReadableJSON(r)
	if err != nil {
		return err
	}
	files := []report.File{{Name: "review.json", Data: text}, {Name: "review.md", Data: r.Markdown()}}
	return report.WriteFiles(dir, files)
}
