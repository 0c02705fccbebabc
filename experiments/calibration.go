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
	gpu      string // that it was fitted on; its speeds count only there; "" = any
	frontend string // of trtllm: the server it is for
	models   string // "dense" or "moe": the models it is for; "" = all
	fittedOn []string
	host     map[string]int64 // picoseconds, by key of the host table
	compute  float64          // factor on the compute speed; 0 = not fitted
	memory   float64          // factor on the memory rate; 0 = not fitted
	kernels  float64          // factor on the speed of every kernel; 0 = not fitted
}

//go:embed calibrations/*.toml
var calibrationFiles embed.FS

var calibrationSchema = config.Schema{
	"":      {"engine", "since", "gpu", "frontend", "models", "command", "fitted_on", "fit_error", "crossvalidated_error", "host", "speed"},
	"host":  schema["pool.host"],
	"speed": {"compute", "memory", "kernels"},
}

// Models that a calibration may be for.
const (
	allModels   = "all"
	denseModels = "dense"
	moeModels   = "moe"
)

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
	if c.engine == trtllm {
		c.frontend = config.Read(root, "frontend", config.OneOf(frontServe, frontNIM), config.Default(frontServe, "not told"))
	} else {
		root.Know("frontend")
	}
	c.models = config.Read(root, "models", config.OneOf(allModels, denseModels, moeModels), config.Default(allModels, "not told"))
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
	for key, into := range map[string]*float64{"compute": &c.compute, "memory": &c.memory, "kernels": &c.kernels} {
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

// suits tells whether a calibration is for a model.
func (c *calibration) suits(m models.LLM) bool {
	return c.models == allModels || (c.models == moeModels) == (m.MoE.Experts > 0)
}

// defaultCalibrations picks the shipped calibrations of an engine for a model: of
// those for any GPU all, of those fitted on one the best (one on this GPU if there
// is one; those for some models only on theirs), each of the newest release that is not newer than the pool's. What is
// more particular comes later.
func defaultCalibrations(e *sim.EngineSpec, minor int, d *models.Deployment) []calibration {
	var list, particular []calibration
	for _, c := range shippedCalibrations() {
		switch {
		case c.engine != e.Kind || c.frontend != e.Frontend || c.since > minor || !c.suits(d.LLM):
		case c.gpu == "":
			list = append(list, c)
		case c.models != allModels && c.gpu != d.GPU.Name: // one factor of one GPU
		default:
			particular = append(particular, c)
		}
	}
	slices.SortStableFunc(list, func(a, b calibration) int {
		return cmp.Compare(rank(a.models != allModels), rank(b.models != allModels))
	})
	if len(particular) == 0 {
		return list
	}
	on := d.GPU.Name
	slices.SortStableFunc(particular, func(a, b calibration) int {
		return cmp.Or(-cmp.Compare(a.since, b.since), -cmp.Compare(rank(a.gpu == on), rank(b.gpu == on)))
	})
	return append(list, particular[0])
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
	list := defaultCalibrations(&p.Engine, l.minor, &p.Deployment)
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
func applyHost(list []calibration, tp int, h *models.Host, sources map[string]string) {
	at := map[string]*int64{
		"front_fixed": &h.FrontFixedPs, "front_per_token": &h.FrontPerTokenPs, "step_fixed": &h.StepFixedPs, "step_per_seq": &h.StepPerSeqPs,
		"step_tp": &h.StepTPPs, "eager_layer": &h.EagerLayerPs, "sync_fixed": &h.SyncFixedPs, "sync_per_seq": &h.SyncPerSeqPs, "publish_per_seq": &h.PublishPerSeqPs,
		"stream_per_token": &h.StreamPerTokenPs,
	}
	for i := range list {
		for key, ps := range list[i].host {
			if key == "step_tp" && tp == 1 { // what several workers cost
				continue
			}
			*at[key] = ps
			sources[key] = list[i].origin()
		}
	}
}

// applySpeed scales the GPU's rates: a change that reaches every kernel.
func (l *loader) applySpeed(pool *config.Table, list []calibration, p *sim.Pool) {
	g := &p.Deployment.GPU
	compute, memory, kernels := 1.0, 1.0, 1.0
	note := func(key string, v float64, c *calibration, into *float64) {
		if v > 0 && (c.gpu == g.Name || c.gpu == "") { // a later one replaces an earlier one
			*into = v
			l.doc.Note(pool.Path("speed")+"."+key, fmt.Sprintf("%.4g", v), "derived", c.origin())
		}
	}
	for i := range list {
		note("compute", list[i].compute, &list[i], &compute)
		note("memory", list[i].memory, &list[i], &memory)
		note("kernels", list[i].kernels, &list[i], &kernels)
	}
	ScaleGPU(g, compute, memory)
	p.Deployment.KernelSpeed = kernels
}

// ScaleGPU makes a GPU of the catalogue faster or slower by two factors: on what
// is computed, and on what is moved from and to memory.
func ScaleGPU(g *models.GPU, compute, memory float64) {
	g.Common.KappaFixed *= compute
	g.Common.KappaMaxClock *= compute
	g.BandwidthGBs *= memory
}
