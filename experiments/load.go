package experiments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Bounds of a run. They are far from any use and keep arithmetic safe.
const (
	maxSpan         = 366 * clock.Day
	maxReplications = 1000
	maxReplicas     = 100_000
	maxTokens       = 10_000_000.0
)

// A loader turns one document into an experiment.
type loader struct {
	doc             *config.Doc
	dir             string // of the experiment file, for trace files
	e               sim.Experiment
	classes         []*config.Table // same order as e.Traffic
	pools           []*config.Table // same order as e.Pools
	rollouts, rules []*config.Table // likewise
	assume          assumptions
	tiers           [][2]string // tier and class
	minor           int         // release of vLLM of the pool being read

	traces     map[int]workloads.TraceStats // of classes that replay one
	lastChange *config.Table                // the one that ends last
}

// Load reads the experiment at path, or the shipped one of that name when there
// is no such file, applies the overrides ("pool.main.replicas=8") and resolves
// every default and catalogue figure. All errors of the input come at once, as
// config.Errors.
func Load(path string, sets ...string) (sim.Experiment, config.Provenance, error) {
	src, err := open(path)
	if err != nil {
		return sim.Experiment{}, config.Provenance{}, err
	}
	return parse(src, sets...)
}

// Parse is Load for a text that is no file; name is its name in messages, and
// files that it names are relative to dir.
func Parse(name, dir, text string, sets ...string) (sim.Experiment, config.Provenance, error) {
	return parse(source{name, text, dir}, sets...)
}

func parse(src source, sets ...string) (sim.Experiment, config.Provenance, error) {
	doc, err := config.Parse(src.file, src.text, sets...)
	if err != nil {
		return sim.Experiment{}, config.Provenance{}, err
	}
	if doc.Root().Has("vary") && !doc.Root().Has("pool") {
		return sim.Experiment{}, config.Provenance{}, config.Errors{{File: src.file, Msg: "this is a sweep, not an experiment", Try: "run it with: sim sweep " + src.file}}
	}
	l := &loader{doc: doc, dir: src.dir}
	l.read()
	if err := doc.Err(); err != nil {
		return sim.Experiment{}, config.Provenance{}, err
	}
	if l.e.Name = strings.TrimSuffix(filepath.Base(src.file), ".toml"); l.e.Name == "" {
		l.e.Name = "experiment" // a file called .toml
	}
	l.e.Assumptions = l.assume.list
	p := doc.Provenance()
	p.SHA256 = Hash(l.e)
	return l.e, p, nil
}

// Hash identifies what is simulated: the SHA-256 of the resolved experiment's
// canonical JSON, without its prose. A trace counts by its content, not by where
// it lies.
func Hash(e sim.Experiment) string {
	e.Name, e.Title, e.Question, e.Postmortem, e.Assumptions = "", "", "", "", nil
	e.Traffic = append([]workloads.Class{}, e.Traffic...)
	for i, c := range e.Traffic {
		if c.Trace != nil {
			trace := *c.Trace
			trace.File = ""
			e.Traffic[i].Trace = &trace
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic("experiments: a resolved experiment is plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// read walks the document from top to bottom.
func (l *loader) read() {
	l.doc.SetSchema(schema, synonyms)
	root := l.doc.Root()
	l.top(root)
	before := l.doc.Failures()
	l.pools = root.Tables("pool", "name", "[[pool]]")
	l.classes = root.Tables("traffic", "class", "[[traffic]]")
	changes := root.Tables("change", "name", "[[change]]")
	slos := root.Tables("slo", "name", "[[slo]]")
	slas := root.Tables("sla", "name", "[[sla]]")
	faults := root.Tables("fault", "name", "[[fault]]")
	l.rollouts = root.Tables("rollout", "name", "[[rollout]]")
	l.rules = root.Tables("rule", "name", "[[rule]]")
	if len(l.pools) == 0 && l.doc.Failures() == before {
		root.Errorf("pool", "", "add a table [[pool]] with name, model, gpu, tensor_parallel and replicas", "the experiment has no [[pool]]: nothing serves the traffic")
	}
	if len(l.classes) == 0 && l.doc.Failures() == before {
		root.Errorf("traffic", "", "add a table [[traffic]] with class, rate, prompt and output", "the experiment has no [[traffic]]: there is nothing to serve")
	}
	unique(l.classes, "class")
	unique(l.pools, "name")
	unique(changes, "name")
	for _, list := range [][]*config.Table{slos, slas, faults, l.rollouts, l.rules} {
		unique(list, "name")
	}

	for _, t := range l.pools {
		l.e.Pools = append(l.e.Pools, l.pool(t))
	}
	l.traces = map[int]workloads.TraceStats{}
	for _, t := range l.classes {
		l.e.Traffic = append(l.e.Traffic, l.class(t))
	}
	l.assignClasses()
	l.changes(changes)
	for _, t := range slos {
		l.e.SLOs = append(l.e.SLOs, l.objectives(t)...)
	}
	for _, t := range slas {
		l.e.SLAs = append(l.e.SLAs, l.sla(t))
	}
	l.holds(changes)
	l.cluster(faults)
	l.review(root)
	root.Done()
	l.warn()
}

// top reads the settings outside of any table.
func (l *loader) top(t *config.Table) {
	e := &l.e
	e.Title = config.Read(t, "title", config.Text, config.Default("", "none given"))
	e.Question = config.Read(t, "question", config.Text, config.Default("", "none given"))
	e.Postmortem = config.Read(t, "postmortem", config.Text, config.Default("", "not stated: where incidents are reviewed"))
	e.Start = config.Read(t, "start", config.WeekTime, config.Default(clock.Duration(0), "weekday and time of t = 0"))
	e.Duration = config.Read(t, "duration", config.Span, config.Required, config.Example[clock.Duration](`"72h"`),
		config.Between(clock.Second, maxSpan))
	e.Warmup = config.Read(t, "warmup", config.Span, config.Default(30*clock.Minute, "pre-roll, simulated and not counted"),
		config.Example[clock.Duration](`"30m"`), config.Between(0, 7*clock.Day))
	e.Settle = config.Read(t, "warmup_rule", config.OneOf("fixed", "mser"), config.Default("fixed", "all of warmup; mser: what MSER-5 finds to be enough of it, in a pilot run")) == "mser"
	e.Seed = uint64(config.Read(t, "seed", config.Int, config.Default(1, "replication 1 uses it, the others derive theirs"),
		config.Between(0, 1<<53)))
	e.Replications = config.Read(t, "replications", config.Int, config.Default(5, "for a 95 % interval over seeds"),
		config.Example[int]("5"), config.Between(1, maxReplications))
	if e.Metrics = config.Read(t, "metrics", config.OneOf(append([]string{"sim"}, sim.Definitions...)...), config.Default("sim", "whose definitions the reported quantiles and TPOT follow"), config.Example[string](`"vllm-bench"`)); e.Metrics == "sim" {
		e.Metrics = ""
	}
	if e.Precision = config.Read(t, "precision", config.Share, config.Default(0.0, "no more replications than stated"), config.Example[float64](`"5%"`), config.Between(0.0, 1)); e.Precision > 0 {
		e.MaxReplications = config.Read(t, "max_replications", config.Int, config.Default(max(50, e.Replications), "however far the precision is"), config.Example[int]("50"), config.Between(2, maxReplications))
		if e.MaxReplications < e.Replications {
			t.Errorf("max_replications", "", "", "max_replications = %d is less than replications = %d", e.MaxReplications, e.Replications)
		}
		if e.Replications < 2 {
			t.Errorf("replications", "2 or more", "an interval needs two", "one replication has no precision")
		}
	} else {
		t.Know("max_replications")
	}
	e.Network = config.Read(t, "network", config.Span, config.Default(clock.Duration(0), "assumption: the way from client to gateway is not modelled"),
		config.Example[clock.Duration](`"20ms"`), config.Between(0, clock.Minute))
	if !t.Has("network") {
		l.assume.add("The network between client and gateway takes no time (network = 0s); add yours to every TTFT.")
	}
}

// unique reports tables of one kind that share a name.
func unique(tables []*config.Table, key string) {
	seen := map[string]bool{}
	for _, t := range tables {
		name := t.Name(key)
		if name != "" && seen[name] {
			t.Errorf(key, "", "give each a name of its own: reports and --set address them by it", "%q is the %s of another table too", name, key)
		}
		seen[name] = true
	}
}

// name reads the identifying key of a table.
func name(t *config.Table, key, example string) string {
	return config.Read(t, key, config.Text, config.Required, config.Example[string](example),
		config.Where(func(s string) bool {
			return strings.TrimSpace(s) != "" && len(s) <= 100 && !strings.ContainsAny(s, "\n\r\t")
		},
			"cannot be a name", "1 to 100 characters on one line", ""))
}
