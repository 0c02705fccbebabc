package engine

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"slosim/models"
	"slosim/sim/clock"
)

var updateVLLM = flag.Bool("update-vllm", false, "rewrite the tables in testdata/vllm")

// Each file in testdata/vllm is a scenario and the steps that vLLM's scheduler makes
// of it, once per line of switches. A table has one line per step:
//
//	set     when its composition was fixed; only with async scheduling, a step ahead
//	tokens  a+5 is a chunk of five prompt tokens, a+5[8] besides eight tokens found
//	        in the prefix cache, a one decoded token, (a) the step too many of a
//	        request that ended by EOS
//	free    KV blocks, idle content of the prefix cache included
//	idle    of them: with content that can still be found
//	queue   who waits when the composition is fixed
//
// The tables are rewritten by go test ./engine -run Tables -update-vllm.
func TestVLLMStepsAsItsTablesSay(t *testing.T) {
	checkTables(t, "vllm", *updateVLLM, kindScenario.vllmTable)
}

// vllmConfig applies the switches of a line to the limits of the file.
func (sc kindScenario) vllmConfig(f fields) Config {
	cfg := sc.cfg
	cfg.Stepping = true
	cfg.ReserveFullPrompt = f.text("gate") != "off"
	cfg.Host.Async = f.text("async") != ""
	cfg.StopEOS = f.text("eos") != ""
	cfg.PrefixCache = f.text("cache") != ""
	cfg.Priority = f.text("policy") == "priority"
	cfg.SkipAhead = f.int("skip")
	cfg.LongPrefillTokens = f.int("threshold")
	f.checkUsed()
	return cfg
}

// vllmTable runs a scenario and writes a line per step.
func (sc kindScenario) vllmTable(t *testing.T, out *strings.Builder, f fields) {
	cfg := sc.vllmConfig(f)
	v := NewVLLM(&cfg)
	fmt.Fprintln(out, f.line)
	var raw strings.Builder
	w := tabwriter.NewWriter(&raw, 0, 0, 2, ' ', 0)
	tr := vllmTracer{t: t, v: v, w: w, rows: map[int32]traced{}, first: map[int32]clock.Time{}, seen: -1}
	fmt.Fprintln(w, strings.Join(tr.heading(), "\t"))
	for requests := sc.requests; len(requests) > 0 || v.steps > 0; {
		at, ok := v.Next()
		if len(requests) > 0 && (!ok || requests[0].Send < at) {
			v.Submit(requests[0].Send, &requests[0])
			at, requests = requests[0].Send, requests[1:]
		}
		tr.observe(at, v.Advance(at, nil))
	}
	w.Flush()
	writeTrimmed(out, raw.String())
	var ttft []string
	for id, r := range sc.requests {
		if first, ok := tr.first[int32(id)]; ok {
			ttft = append(ttft, letter(int32(id))+" "+span(int64(first-r.Send)))
		}
	}
	s := v.Spent(clock.Never - 1)
	fmt.Fprintf(out, "%d steps, %s; TTFT %s\n\n", s.Steps, span(int64(s.Busy)), strings.Join(ttft, ", "))
	if l := v.Load(clock.Never - 1); l.Blocks != 0 || l.Tokens != 0 || l.Waiting != 0 {
		t.Errorf("%s: at rest it holds %+v", f.line, l)
	}
}

// vllmTracer follows a replica from outside: after every instant it compares what
// the rows hold with what they held before, and checks the sums against the batches
// that the replica says it scheduled.
type vllmTracer struct {
	t       *testing.T
	v       *VLLM
	w       *tabwriter.Writer
	seen    int64        // newest step in the table
	ended   int64        // steps written
	pending []tracedStep // scheduled steps that have not ended
	rows    map[int32]traced
	first   map[int32]clock.Time // token of each request
	hit     int64                // tokens found in the prefix cache so far
}

// traced is where a request stood at the last look.
type traced struct {
	computed int64
	decodes  bool // it has made its prompt's last chunk
}

type tracedStep struct {
	set, from, to clock.Time
	batch         models.Batch
	text          string
}

// heading lists the columns of the table.
func (tr *vllmTracer) heading() []string {
	head := []string{"step", "from", "to", "prefill", "decode", "free", "tokens", "queue", "at its end"}
	if tr.v.cfg.PrefixCache {
		head = slices.Insert(head, 6, "idle")
	}
	if tr.v.cfg.Host.Async {
		head = slices.Insert(head, 1, "set")
	}
	return head
}

// observe looks at the replica after it was advanced to now.
func (tr *vllmTracer) observe(now clock.Time, events []Event) {
	v := tr.v
	var what []string
	for _, e := range events {
		if e.Kind == Preempted {
			tr.rows[e.ID] = traced{}
		}
		if _, ok := tr.first[e.ID]; !ok && (e.Kind == FirstToken || e.Kind == Finished) {
			tr.first[e.ID] = e.At
		}
		what = append(what, happened(e))
	}
	if v.spent.Steps > tr.ended {
		tr.ended++
		tr.write(tr.pending[0], strings.Join(what, ", "))
		tr.pending = tr.pending[1:]
	} else if len(what) > 0 {
		fmt.Fprintf(tr.w, "%s%s %s\n", strings.Repeat("\t", len(tr.heading())-1), span(int64(now)), strings.Join(what, ", "))
	}
	if v.spent.Steps != tr.ended {
		tr.t.Fatalf("at %d: %d steps ended, the table has %d", now, v.spent.Steps, tr.ended)
	}
	tr.schedule(now)
	if v.steps > 0 {
		tr.pending[0].from, tr.pending[0].to = v.run.at(v.run.n), v.run.end
	}
}

// schedule adds the steps that were composed since the last look: one, or two if an
// idle replica with async scheduling got its only request.
func (tr *vllmTracer) schedule(now clock.Time) {
	v := tr.v
	var fresh []*step
	for k := v.steps - int8(v.newest-tr.seen); k < v.steps; k++ {
		fresh = append(fresh, v.at(k))
	}
	if tr.seen = v.newest; len(fresh) == 0 {
		return
	}
	moves := tr.moves()
	if len(fresh) == 2 {
		if len(moves) != 1 {
			tr.t.Fatalf("at %d two steps of %d requests were composed at once: their shares cannot be told apart", now, len(moves))
		}
		tr.add(now, fresh[0].batch, moves[0].first(fresh[0].batch))
		tr.add(now, fresh[1].batch, moves[0].second(fresh[1].batch))
		return
	}
	var shares []string
	var sum models.Batch
	for _, m := range moves {
		if text := m.share(); text != "" {
			shares = append(shares, text)
		}
		sum.PrefillTokens += m.chunk
		sum.DecodeSeqs += m.decoded + m.extra
	}
	b := fresh[0].batch
	if sum.PrefillTokens != b.PrefillTokens || sum.DecodeSeqs != b.DecodeSeqs {
		tr.t.Fatalf("at %d the rows moved by %+v, the batch says %+v", now, sum, b)
	}
	tr.add(now, b, strings.Join(shares, " "))
}

// add adds a composed step.
func (tr *vllmTracer) add(now clock.Time, b models.Batch, shares string) {
	v := tr.v
	var queue []string
	for k := range v.waiting.n {
		queue = append(queue, letter(v.rows[v.waiting.at(k)].id))
	}
	cells := []string{fmt.Sprint(v.freeBlks), shares, strings.Join(queue, " ")}
	if v.cfg.PrefixCache {
		cells = slices.Insert(cells, 1, fmt.Sprint(v.cache.idle))
	}
	tr.pending = append(tr.pending, tracedStep{set: now, batch: b, text: strings.Join(cells, "\t")})
}

// move is how far a request got since the last look.
type move struct {
	name           string
	chunk, decoded int32
	found          int64 // tokens of its prompt from the prefix cache
	extra          int32 // 1: it takes part although it has ended
}

func (m move) share() string {
	switch {
	case m.extra > 0:
		return "(" + m.name + ")"
	case m.decoded > 0:
		return m.name
	case m.chunk > 0 && m.found > 0:
		return fmt.Sprintf("%s+%d[%d]", m.name, m.chunk, m.found)
	case m.chunk > 0:
		return fmt.Sprintf("%s+%d", m.name, m.chunk)
	}
	return ""
}

// first and second split the move of a request that was alone in two steps.
func (m move) first(b models.Batch) string {
	return move{name: m.name, chunk: b.PrefillTokens, found: m.found}.share()
}

func (m move) second(b models.Batch) string {
	return move{name: m.name, chunk: b.PrefillTokens, decoded: b.DecodeSeqs, extra: m.extra}.share()
}

// moves lists how far the running requests got, in order of admission.
func (tr *vllmTracer) moves() (moves []move) {
	v := tr.v
	hit := v.spent.Hit - tr.hit
	tr.hit = v.spent.Hit
	admitted := 0
	for _, e := range v.inOrder() {
		if !e.current(v.rows) {
			continue
		}
		r := &v.rows[e.row]
		before, after := tr.rows[r.id], traced{computed: int64(r.computed), decodes: r.state != prefilling}
		switch r.state {
		case decoding:
			after.computed = r.heldAt0 + v.newest
		case ending:
			after.computed = int64(r.prompt + r.output - 1)
		}
		tr.rows[r.id] = after
		m := move{name: letter(r.id)}
		n := after.computed - before.computed
		if before.computed == 0 {
			admitted++
			if len(v.content) > 0 && v.content[e.row].public > 0 { // only a row with cached blocks can have found any
				m.found = hit
				n -= hit
			}
		}
		if m.decoded = int32(n); !before.decodes {
			m.chunk, m.decoded = int32(n), 0
		}
		if r.state == ending && v.asides[e.row].extra == v.newest {
			m.extra = 1
		}
		moves = append(moves, m)
	}
	if hit > 0 && admitted != 1 {
		tr.t.Fatalf("%d tokens found by %d requests: whose they are cannot be told", hit, admitted)
	}
	return moves
}

// write writes a step that has ended.
func (tr *vllmTracer) write(s tracedStep, events string) {
	set := ""
	if tr.v.cfg.Host.Async {
		set = span(int64(s.set)) + "\t"
	}
	fmt.Fprintf(tr.w, "%d\t%s%s\t%s\t%d\t%d\t%s\t%s\n", tr.ended, set, span(int64(s.from)), span(int64(s.to)), s.batch.PrefillTokens, s.batch.DecodeSeqs, s.text, events)
}
