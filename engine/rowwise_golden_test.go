package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"slosim/sim/clock"
	"slosim/workloads"
)

var updateKinds = flag.Bool("update-kinds", false, "rewrite the tables in testdata/kinds")

// Each file in testdata/kinds is a scenario and the steps that it leads to: input,
// a line of dashes, and a table per engine that a person can check by hand. The
// tables are rewritten by go test ./engine -run Tables -update-kinds.
func TestKindsStepAsTheirTablesSay(t *testing.T) {
	checkTables(t, "kinds", *updateKinds, kindScenario.table)
}

// checkTables holds the tables that follow from the scenarios in a folder of
// testdata against the ones that stand there, or rewrites them.
func checkTables(t *testing.T, folder string, update bool, table func(kindScenario, *testing.T, *strings.Builder, fields)) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no tables")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := strings.Cut(string(raw), "----\n")
			sc := parseScenario(t, input)
			var got strings.Builder
			for _, e := range sc.engines {
				table(sc, t, &got, e)
			}
			if update {
				if err := os.WriteFile(file, []byte(input+"----\n"+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := gocmp.Diff(want, got.String()); d != "" {
				t.Errorf("%s (-file +got), -update-%s rewrites it:\n%s", file, folder, d)
			}
		})
	}
}

// kindScenario is the input of a table.
type kindScenario struct {
	cfg      Config
	engines  []fields
	requests []workloads.Request // Send is the arrival; ID 0 is called a
}

// fields are the key=value pairs of a line, and its first word.
type fields struct {
	head string
	line string
	m    map[string]string
	used map[string]bool
	t    *testing.T
}

func (f fields) text(key string) string {
	f.used[key] = true
	return f.m[key]
}

func (f fields) int(key string) int32 {
	if f.text(key) == "" {
		return 0
	}
	n, err := strconv.ParseInt(f.m[key], 10, 32)
	if err != nil {
		f.t.Fatalf("%s: %s=%s: %v", f.head, key, f.m[key], err)
	}
	return int32(n)
}

func (f fields) float(key string) float64 {
	v, err := strconv.ParseFloat("0"+f.text(key), 64)
	if err != nil {
		f.t.Fatalf("%s: %s=%s: %v", f.head, key, f.m[key], err)
	}
	return v
}

func (f fields) ns(key string) int64 {
	if f.text(key) == "" {
		return 0
	}
	d, err := time.ParseDuration(f.m[key])
	if err != nil {
		f.t.Fatalf("%s: %v", f.head, err)
	}
	return d.Nanoseconds()
}

func parseScenario(t *testing.T, input string) kindScenario {
	t.Helper()
	var sc kindScenario
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		f := fields{head: words[0], line: strings.TrimSpace(line), m: map[string]string{}, used: map[string]bool{}, t: t}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			f.m[key] = value
		}
		switch f.head {
		case "limits":
			sc.cfg.MaxBatchedTokens, sc.cfg.MaxSeqs, sc.cfg.MaxModelLen = f.int("tokens"), f.int("seqs"), f.int("len")
			sc.cfg.BlockSize, sc.cfg.KVBlocks = f.int("block"), f.int("blocks")+1
		case "step":
			sc.cfg.Model = toy{base: 1000 * f.ns("base"), token: 1000 * f.ns("token"), ctx: 1000 * f.ns("context")}
		case "request":
			sc.requests = append(sc.requests, f.request(int32(len(sc.requests)), sc.cfg.BlockSize))
		default:
			sc.engines = append(sc.engines, f)
			continue
		}
		f.checkUsed()
	}
	return sc
}

// request reads a request. Its first system tokens are the system prompt that all
// such requests share; the rest belongs to its session, or to nobody else.
func (f fields) request(id, block int32) workloads.Request {
	r := workloads.Request{
		ID: id, Prompt: f.int("prompt"), Output: f.int("output"), Priority: f.int("priority"),
		Send: clock.Time(f.ns("at")),
	}
	system, session := f.int("system"), f.int("session")
	if system > 0 || session > 0 {
		r.Chain = workloads.Chain{Group: 1, GroupUnits: system / block, Session: uint64(session), UnitSize: block}
		if session == 0 {
			r.Chain.Session = 1<<32 + uint64(id)
		}
	}
	return r
}

func (f fields) checkUsed() {
	for key := range f.m {
		if !f.used[key] {
			f.t.Fatalf("%s: unknown key %s", f.head, key)
		}
	}
}

// make returns the replica that an engine line describes.
func (sc kindScenario) make(t *testing.T, f fields) (r Replica, c *rowwise) {
	asked := f.int("asked")
	switch f.head {
	case "sglang":
		s := NewSGLang(sc.cfg, SGLangOptions{ChunkTokens: f.int("chunk"), Conservativeness: f.float("conservativeness"), MixedChunk: f.text("mixed") != "", MaxNewTokens: asked})
		r, c = s, &s.rowwise
	case "trtllm":
		policy := slices.Index([]string{"guaranteed_no_evict", "max_utilization", "static_batch"}, f.text("policy"))
		s := NewTRTLLM(sc.cfg, TRTLLMOptions{Policy: CapacityPolicy(policy), MaxNewTokens: asked})
		r, c = s, &s.rowwise
	case "tgi":
		g := NewTGI(sc.cfg, TGIOptions{WaitingServedRatio: f.float("ratio"), MaxWaitingTokens: int(f.int("waiting_tokens")), MaxNewTokens: asked})
		r, c = g, &g.rowwise
	case "static":
		s := NewStatic(sc.cfg)
		r, c = s, &s.rowwise
	default:
		t.Fatalf("no engine %q", f.head)
	}
	f.checkUsed()
	return r, c
}

// table runs a scenario and writes a line per step.
func (sc kindScenario) table(t *testing.T, out *strings.Builder, f fields) {
	r, c := sc.make(t, f)
	fmt.Fprintln(out, strings.TrimSpace(f.head+" "+f.m["policy"]))
	var raw strings.Builder
	w := tabwriter.NewWriter(&raw, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "step\tfrom\tto\tprefill\tdecode\tfree\ttokens\tqueue\tat its end")
	tr := tracer{c: c, before: map[int32]int32{}}
	for requests := sc.requests; len(requests) > 0 || c.steps > 0; {
		at, ok := r.Next()
		if len(requests) > 0 && (!ok || requests[0].Send < at) {
			r.Submit(requests[0].Send, &requests[0])
			at, requests = requests[0].Send, requests[1:]
		}
		tr.observe(w, r.Advance(at, nil))
	}
	w.Flush()
	writeTrimmed(out, raw.String())
	s := r.Spent(clock.Never - 1)
	fmt.Fprintf(out, "%d steps, %s\n\n", s.Steps, span(int64(s.Busy)))
}

// tracer writes the step that runs when it has ended.
type tracer struct {
	c      *rowwise
	steps  int64
	line   string          // of the running step, but for its end
	before map[int32]int32 // computed tokens by request
}

func (tr *tracer) observe(w *tabwriter.Writer, events []Event) {
	c := tr.c
	var what []string
	for _, e := range events {
		if e.Kind == Preempted {
			tr.before[e.ID] = 0
		}
		what = append(what, happened(e))
	}
	if tr.line != "" && (c.scheduled > tr.steps || c.steps == 0) {
		fmt.Fprintf(w, "%s\t%s\n", tr.line, strings.Join(what, ", "))
		tr.line = ""
	}
	if c.scheduled == tr.steps {
		return
	}
	tr.steps = c.scheduled
	var tokens, queue []string
	for i := range c.jobs {
		j := &c.jobs[i]
		if n := j.computed - tr.before[j.id]; j.output > 0 && n > 0 {
			switch {
			case j.made > j.output:
				tokens = append(tokens, "("+letter(j.id)+")")
			case j.computed > j.target:
				tokens = append(tokens, letter(j.id))
			default:
				tokens = append(tokens, fmt.Sprintf("%s+%d", letter(j.id), n))
			}
			tr.before[j.id] = j.computed
		}
	}
	slices.SortFunc(tokens, func(a, b string) int { return strings.Compare(strings.Trim(a, "("), strings.Trim(b, "(")) })
	for k := range c.waiting.n {
		queue = append(queue, letter(c.jobs[c.waiting.at(k)].id))
	}
	b := c.ring[0].batch
	tr.line = fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s", tr.steps, span(int64(c.run.at(c.run.n))), span(int64(c.run.end)),
		b.PrefillTokens, b.DecodeSeqs, c.freeBlks, strings.Join(tokens, " "), strings.Join(queue, " "))
}

// writeTrimmed writes a table without the padding of its last column.
func writeTrimmed(out *strings.Builder, table string) {
	for line := range strings.Lines(table) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

func letter(id int32) string { return string(rune('a' + id)) }

// happened says what an event is.
func happened(e Event) string {
	name := map[Kind]string{FirstToken: "first", Finished: "finished", Rejected: "rejected"}[e.Kind]
	if e.Kind == Preempted {
		name = fmt.Sprintf("preempted (%d tokens lost)", e.Lost)
	}
	return letter(e.ID) + " " + name
}

func span(ns int64) string { return fmt.Sprintf("%.2fms", float64(ns)/1e6) }
