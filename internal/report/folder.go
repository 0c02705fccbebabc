package report

// File is one output of a verb, complete in memory before anything is written.
type File struct {
	Name string // within the folder, no path
	Data []byte
}

// WriteFiles replaces dir by these files, as Write does for a run.
func WriteFiles(dir string, list []File) error {
	var files []file
	for _, f := range list {
		files = append(files, file{f.Name, f.Data})
	}
	return replace(dir, files)
}

// ReadableJSON writes v so that a person can review a change of it.
func ReadableJSON(v any) ([]byte, error) { return readableJSON(v) }
