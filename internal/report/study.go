package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
)

// WriteStudy puts the files of a study of many runs into dir, as Write does for one
// run: report.html, summary.md, summary.json and more.
func WriteStudy(dir string, d *Document, markdown func(io.Writer), json func(io.Writer) error, more map[string][]byte) error {
	page, err := d.HTML()
	if err != nil {
		return err
	}
	var text, data bytes.Buffer
	markdown(&text)
	if err := json(&data); err != nil {
		return fmt.Errorf("report: summary.json: %w", err)
	}
	files := []file{{"report.html", page}, {"summary.md", text.Bytes()}, {"summary.json", data.Bytes()}}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		files = append(files, file{name, more[name]})
	}
	return replace(dir, files)
}
