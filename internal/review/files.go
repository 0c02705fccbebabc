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
	page, err := r.Document().HTML()
	if err != nil {
		return err
	}
	files := []report.File{{Name: "review.html", Data: page}, {Name: "review.json", Data: text}, {Name: "review.md", Data: r.Markdown()}}
	if r.incidental {
		page, err := r.PostMortem().HTML()
		if err != nil {
			return err
		}
		files = append(files, report.File{Name: "post-mortem.html", Data: page}, report.File{Name: "post-mortem.md", Data: r.PostMortemMarkdown()})
	}
	for _, l := range r.Levers {
		if l.File != "" {
			files = append(files, report.File{Name: l.File, Data: []byte(l.text)})
		}
	}
	return report.WriteFiles(dir, files)
}
