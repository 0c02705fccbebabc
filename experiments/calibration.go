package experiments

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

// A calibration holds constants that were fitted to measured runs: host times of
// an engine, and how fast a GPU computes and reads memory in serving compared
// with the kernel tables. sim calibrate writes such files; those in calibrations/
// are the defaults of the engines and releases they name.
type calibration struct {
	name     string // of the file
	engine   string
	since    int    // minor release of vLLM from which on it counts
	gpu      string // that it was fitted on; its speeds count only there
	fittedOn []string
	host     map[string]int64 // picoseconds, by key of the host table
	compute  float64          // factor on the compute speed; 0 = not fitted
	memory   float64          // factor on the memory rate; 0 = not fitted
}

//go:embed calibrations/*.toml
var calibrationFiles embed.FS

var calibrationSchema = config.Schema{
	"":      {"engine", "since", "gpu", "command", "fitted_on", "fit_error", "crossvalidated_error", "host", "speed"},
	"host":  schema["pool.host"],
	"speed": {"compute", "memory"},
}

const (
	leastSpeed = 0.3
	mostSpeed  = 2.0
)

// parseCalibration reads a calibration's text.
func parseCalibration(file, text string) (calibration, error) {
	doc, err := config.Parse(file, text)
	if err != nil {
		return calibration{}, err
	}
	doc.SetSchema(calibrationSchema, nil)
	root := doc.Root()
	c := calibration{name: filepath.Base(file), host: map[string]int64{}}
	c.engine = config.Read(root, "engine", config.OneOf(engineKinds...), config.Required)
	if root.Has("since") {
		c.since = config.Read(root, "since", version).minor
	}
	c.gpu = config.Read(root, "gpu", config.Text, config.Default("", "any"))
	c.fittedOn = config.Read(root, "fitted_on", config.Texts, config.Default([]string(nil), "not told"))
	root.Know("command", "fit_error", "crossvalidated_error")
	host := root.Sub("host", `host = { front_fixed = "4.5ms" }`)
	for _, key := range schema["pool.host"] {
		if host.Has(key) {
			c.host[key] = config.Read(host, key, config.FineSpan, config.Between(0, int64(maxHostPs)))
		} else {
			host.Know(key)
		}
	}
	speed := root.Sub("speed", `speed = { compute = 1.02 }`)
	for key, into := range map[string]*float64{"compute": &c.compute, "memory": &c.memory} {
		if speed.Has(key) {
			*into = config.Read(speed, key, config.Float, config.Between(leastSpeed, mostSpeed))
		} else {
			speed.Know(key)
		}
	}
	root.Done()
	return c, doc.Err()
}

// CalibrationEngine reads a calibration file and returns the engine it is of.
func CalibrationEngine(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("the calibration %s cannot be read: %s\n  write one with: sim calibrate", file, reason(err))
	}
	c, err := parseCalibration(file, string(text))
	return c.engine, err
}

// shippedCalibrations are the defaults, in order of their names.
var shippedCalibrations = sync.OnceValue(readShipped)

func readShipped() []calibration {
	files, _ := fs.Glob(calibrationFiles, "calibrations/*.toml")
	var list []calibration
	for _, f := range files {
		text, err := calibrationFiles.ReadFile(f)
		var c calibration
		if err == nil {
			c, err = parseCalibration(path.Base(f), string(text))
		}
		if err != nil {
			panic("experiments/" + f + ": " + err.Error()) // part of the binary
		}
		list = append(list, c)
	}
	return list
}

// defaultCalibration picks the shipped calibration for an engine: on this GPU if
// there is one, of the newest release that is not newer than the pool's.
func defaultCalibration(engine string, minor int, gpu string) (calibration, bool) {
	var fits []calibration
	for _, c := range shippedCalibrations() {
		if c.engine == engine && c.since <= minor {
			fits = append(fits, c)
		}
	}
	if len(fits) == 0 {
		return calibration{}, false
	}
	slices.SortStableFunc(fits, func(a, b calibration) int {
		return cmp.Or(-cmp.Compare(a.since, b.since), -cmp.Compare(rank(a.gpu == gpu), rank(b.gpu == gpu)))
	})
	return fits[0], true
}

func rank(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// FittedOn tells whether shipped constants were fitted on a measured run, or on a
// phase of it: such runs prove nothing about them.
func FittedOn(source, run, phase string) bool {
	for _, c := range shippedCalibrations() {
		if slices.Contains(c.fittedOn, source+"/"+run) || phase != "" && slices.Contains(c.fittedOn, source+"/"+run+"/"+phase) {
			return true
		}
	}
	return false
}

// calibration settles the constants of a pool's engine: the shipped ones of its
// release, then those of the file that calibration names.
func (l *loader) calibration(pool *config.Table, p *sim.Pool) []calibration {
	var list []calibration
	if c, ok := defaultCalibration(p.Engine.Kind, l.minor, p.Deployment.GPU.Name); ok {
		list = append(list, c)
	}
	if !pool.Has("calibration") {
		pool.Know("calibration")
		return list
	}
	before := l.doc.Failures()
	file := config.Read(pool, "calibration", config.Text, config.Example[string](`"calibration.toml"`))
	if l.doc.Failures() > before {
		return list
	}
	if !filepath.IsAbs(file) && !pool.FromSet("calibration") {
		file = filepath.Join(l.dir, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		pool.Errorf("calibration", "", "paths are relative to the experiment file; write one with: sim calibrate", "the calibration %s cannot be read: %s", filepath.ToSlash(file), reason(err))
		return list
	}
	c, err := parseCalibration(file, string(text))
	var faults config.Errors
	if errors.As(err, &faults) {
		for _, e := range faults {
			l.doc.Add(e)
		}
		return list
	}
	if c.engine != p.Engine.Kind {
		pool.Errorf("calibration", fmt.Sprintf("one with engine = %q", p.Engine.Kind), "", "the calibration %s is of engine = %q, the pool's engine is %q", c.name, c.engine, p.Engine.Kind)
		return list
	}
	if c.gpu == "" {
		c.gpu = p.Deployment.GPU.Name
	} else if c.gpu != p.Deployment.GPU.Name {
		l.assume.add("Pool %s: the calibration %s is of %s; on %s only its host times count.", p.Name, c.name, c.gpu, p.Deployment.GPU.Name)
	}
	return append(list, c)
}

// origin says where a constant comes from.
func (c *calibration) origin() string {
	if len(c.fittedOn) == 0 {
		return "calibration " + c.name
	}
	return "calibration " + c.name + ": fitted on " + strings.Join(c.fittedOn, ", ")
}

// applyHost overrides host constants and their sources.
func applyHost(list []calibration, h *models.Host, sources map[string]string) {
	at := map[string]*int64{
		"front_fixed": &h.FrontFixedPs, "front_per_token": &h.FrontPerTokenPs, "step_fixed": &h.StepFixedPs, "step_per_seq": &h.StepPerSeqPs,
		"step_tp": &h.StepTPPs, "sync_fixed": &h.SyncFixedPs, "sync_per_seq": &h.SyncPerSeqPs, "publish_per_seq": &h.PublishPerSeqPs,
	}
	for i := range list {
		for key, ps := range list[i].host {
			*at[key] = ps
			sources[key] = list[i].origin()
		}
	}
}

// applySpeed scales the GPU's rates: a change that reaches every kernel.
func (l *loader) applySpeed(pool *config.Table, list []calibration, p *sim.Pool) {
	g := &p.Deployment.GPU
	compute, memory := 1.0, 1.0
	note := func(key string, v float64, c *calibration, into *float64) {
		if v > 0 && c.gpu == g.Name { // a later one replaces an earlier one
			*into = v
			l.doc.Note(pool.Path("speed")+"."+key, fmt.Sprintf("%.4g", v), "derived", c.origin())
		}
	}
	for i := range list {
		note("compute", list[i].compute, &list[i], &compute)
		note("memory", list[i].memory, &list[i], &memory)
	}
	ScaleGPU(g, compute, memory)
}

// ScaleGPU makes a GPU of the catalogue faster or slower by two factors: on what
// is computed, and on what is moved from and to memory.
func ScaleGPU(g *models.GPU, compute, memory float64) {
	g.Common.KappaFixed *= compute
	g.Common.KappaMaxClock *= compute
	g.BandwidthGBs *= memory
}
