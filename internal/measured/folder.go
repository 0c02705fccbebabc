package measured

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Folder is what a folder of measurements holds.
type Folder struct {
	Runs    []Run
	Ignored []string // files with an unknown header
	Errors  []error  // of files and rows that could not be read
}

// layout is a kind of table that is recognised by its columns.
type layout struct {
	name    string
	columns []string
	read    func(r *reader, t *table)
}

// layouts in the order in which they are tried.
var layouts = []layout{
	{"residency", []string{"arrival_us", "send_lag_us", "input_tokens", "output_tokens", "ttft_us", "e2e_us"}, (*reader).residency},
	{"replay16", []string{"index", "arrival_us", "input_tokens", "ttft_us", "e2e_us", "error"}, (*reader).replay},
	{"inferencex", []string{"backend", "model_path", "system", "isl", "osl", "concurrency", "silicon_tpot_ms"}, (*reader).inferencex},
	{"nim", []string{"model", "precision", "gpu", "isl", "osl", "concurrency", "itl_ms_avg"}, (*reader).nim},
	{"mlenergy", []string{"model_id", "gpu_model", "max_num_seqs", "median_itl_ms"}, (*reader).mlenergy},
	{"trtllm", []string{"model", "gpu", "precision", "isl", "osl", "total_out_tok_s"}, (*reader).trtllm},
	{"mlperf", []string{"submitter", "benchmark", "scenario_dir", "accelerator", "completed_rps"}, (*reader).mlperf},
	{"replay16", []string{"experiment", "stage", "workload", "itl_mean_ms", "ttft_mean_ms"}, (*reader).sim2real},
}

// settings are tables beside the requests that say how the runs were set up.
var settings = map[string][]string{
	"residency": {"run", "model", "gpu", "vllm", "kv_blocks", "max_num_seqs"},
	"replay16":  {"experiment", "model", "gpu", "tp", "max_num_seqs", "kv_blocks_gpu", "output_len"},
}

// reader reads one folder.
type reader struct {
	dir   string
	out   Folder
	setup map[string]*table // settings by layout, all files of the folder
	rows  map[string]map[string]int
	path  string // of the table being read
}

// ReadFolder reads every known table under dir, whatever its name and depth. The
// order is that of the file names. A folder without any is an error.
func ReadFolder(dir string) (Folder, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("%s: %w", dir, plain(err))
	}
	if !info.IsDir() {
		return Folder{}, fmt.Errorf("%s is a file, not a folder of measurements", dir)
	}
	r := &reader{dir: dir, setup: map[string]*table{}, rows: map[string]map[string]int{}}
	var tables []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			r.out.Errors = append(r.out.Errors, err)
			return nil
		}
		name := strings.ToLower(d.Name())
		if !d.IsDir() && (strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".csv.gz")) {
			tables = append(tables, path)
		}
		return nil
	})
	if err != nil {
		return Folder{}, err
	}
	for _, path := range tables {
		r.readSettings(path)
	}
	for _, path := range tables {
		r.readRuns(path)
	}
	if len(r.out.Runs) == 0 && len(r.out.Errors) == 0 {
		return Folder{}, fmt.Errorf("%s holds no measurements: none of its %d CSV files has the columns of a known layout (%s)", dir, len(tables), names())
	}
	return r.out, nil
}

func names() string {
	var list []string
	for _, l := range layouts {
		if len(list) == 0 || !strings.Contains(strings.Join(list, ", "), l.name) {
			list = append(list, l.name)
		}
	}
	return strings.Join(list, ", ")
}

func (r *reader) shown(path string) string {
	if rel, err := filepath.Rel(r.dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// readSettings takes the rows of a table of settings.
func (r *reader) readSettings(path string) {
	header := headerOf(path)
	for name, columns := range settings {
		if !has(header, columns...) {
			continue
		}
		t, err := readTable(path, r.shown(path))
		if err != nil {
			r.out.Errors = append(r.out.Errors, err)
			return
		}
		if r.setup[name] == nil { // a second table of the same layout adds its rows
			r.setup[name], r.rows[name] = t, map[string]int{}
		} else if old := r.setup[name]; strings.Join(old.header, ",") == strings.Join(t.header, ",") {
			old.rows = append(old.rows, t.rows...)
		}
		t = r.setup[name]
		for i := range t.rows {
			r.rows[name][t.text(i, columns[0])] = i
		}
	}
}

// readRuns reads the runs of a table, if its layout is known.
func (r *reader) readRuns(path string) {
	header := headerOf(path)
	for _, l := range layouts {
		if !has(header, l.columns...) {
			continue
		}
		t, err := readTable(path, r.shown(path))
		if err != nil {
			r.out.Errors = append(r.out.Errors, err)
			return
		}
		r.path = path
		from := len(r.out.Runs)
		l.read(r, t)
		for i := from; i < len(r.out.Runs); i++ {
			run := &r.out.Runs[i]
			run.Source, run.File = l.name, t.file
		}
		if err := t.err(); err != nil {
			r.out.Errors = append(r.out.Errors, err)
		}
		return
	}
	for _, columns := range settings {
		if has(header, columns...) {
			return
		}
	}
	r.out.Ignored = append(r.out.Ignored, r.shown(path))
}

func (r *reader) add(run Run) { r.out.Runs = append(r.out.Runs, run) }

// found returns the row of a run in the settings of a layout; without one it is
// the first row, if all rows agree on what it is needed for, else −1.
func (r *reader) found(layout, name string) (*table, int) {
	t := r.setup[layout]
	if t == nil || len(t.rows) == 0 {
		return nil, -1
	}
	if i, ok := r.rows[layout][name]; ok {
		return t, i
	}
	return t, -1
}
