package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const guide = "../docs/guide.md"

// chapters are the guide's headings of each kind of table, and the path at which
// its examples are tried.
var chapters = map[string]struct{ heading, path string }{
	"":                           {"## Top level", ""},
	"pool":                       {"## `[[pool]]`", "pool.main."},
	"pool.link":                  {"### `link`", "pool.main.link."},
	"pool.engine":                {"### `engine`", "pool.main.engine."},
	"pool.engine.speculative":    {"#### `speculative`", "pool.main.engine.speculative."},
	"pool.engine.offload":        {"#### `offload`", "pool.main.engine.offload."},
	"pool.host":                  {"### `host`", "pool.main.host."},
	"pool.thermal":               {"### `thermal`", "pool.main.thermal."},
	"pool.thermal.hot_aisle":     {"#### `hot_aisle`", "pool.main.thermal.hot_aisle."},
	"pool.thermal.rack":          {"#### `rack`", "pool.main.thermal.rack."},
	"pool.overflow":              {"### `overflow`", "pool.main.overflow."},
	"pool.gate":                  {"### `gate`", "pool.main.gate."},
	"pool.autoscale":             {"### `autoscale`", "pool.main.autoscale."},
	"pool.autoscale.schedule":    {"#### `schedule`", "pool.main.autoscale.schedule.0."},
	"pool.wear":                  {"### `wear`", "pool.main.wear."},
	"traffic.limit":              {"### `limit`", "traffic.chat.limit."},
	"fault":                      {"## `[[fault]]`", `fault."one down".`},
	"rollout":                    {"## `[[rollout]]`", "rollout.upgrade."},
	"review":                     {"## `[review]`", "review."},
	"rule":                       {"## `[[rule]]`", `rule."shed the free tier".`},
	"traffic":                    {"## `[[traffic]]`", "traffic.chat."},
	"traffic.rate":               {"### `rate`", "traffic.chat.rate."},
	"traffic.rate.bursts":        {"#### `bursts`", "traffic.chat.rate.bursts.0."},
	"traffic.rate.ramps":         {"#### `ramps`", "traffic.chat.rate.ramps.0."},
	"traffic.rate.ladder":        {"#### `ladder`", "traffic.chat.rate.ladder."},
	"traffic.rate.random_bursts": {"#### `random_bursts`", "traffic.chat.rate.random_bursts."},
	"traffic.rate.regimes":       {"#### `regimes`", "traffic.chat.rate.regimes.0."},
	"traffic.rate.hawkes":        {"#### `hawkes`", "traffic.chat.rate.hawkes."},
	"traffic.session":            {"### `session`", "traffic.chat.session."},
	"traffic.retry":              {"### `retry`", "traffic.chat.retry."},
	"traffic.trace":              {"### `trace`", "traffic.chat.trace."},
	"traffic.trace.where":        {"#### `where`", "traffic.chat.trace.where."},
	"traffic.system_prompt":      {"### `system_prompt`", "traffic.chat.system_prompt."},
	"traffic.prefix_hit":         {"### `prefix_hit`", "traffic.chat.prefix_hit."},
	"traffic.prompt":             {"## Lengths", "traffic.chat.prompt."},
	"traffic.prompt.tail":        {"### `tail`", "traffic.chat.prompt.tail."},
	"change":                     {"## `[[change]]`", "change.feature."},
	"slo":                        {"## `[[slo]]`", `slo."chat TTFT".`},
	"slo.all":                    {"### `all`", `slo."chat TTFT".all.`},
	"slo.policy":                 {"### `policy`", `slo."chat TTFT".policy.`},
	"slo.alerts":                 {"### `alerts`", `slo."chat TTFT".alerts.0.`},
	"traffic.stage_budget":       {"### `stage_budget`", "traffic.chat.stage_budget."},
	"slo.adaptive":               {"### `adaptive`", `slo."chat TTFT".adaptive.`},
	"sla":                        {"## `[[sla]]`", "sla.enterprise."},
	"sla.credits":                {"### `credits`", "sla.enterprise.credits.0."},
	"sla.maintenance":            {"### `maintenance`", "sla.enterprise.maintenance.0."},
	"slo.count":                  {"### `count`", `slo."chat TTFT".count.`},
}

// chapterOf returns the kind whose chapter stands for a kind of table: lengths,
// rates that are added and what a change replaces are described once.
func chapterOf(kind string) string {
	kind = strings.Replace(kind, "traffic.rate.add.", "traffic.rate.", 1)
	switch {
	case strings.HasSuffix(kind, ".tail"):
		return "traffic.prompt.tail"
	case slices.Contains(schema[kind], "dist") && !strings.HasSuffix(kind, ".parts"):
		return "traffic.prompt"
	case kind == "change.system_prompt" || kind == "change.prefix_hit":
		return strings.Replace(kind, "change", "traffic", 1)
	}
	return kind
}

// guideRow is a line of a table of keys.
type guideRow struct{ key, example string }

// rowsOf returns the key tables of a chapter, up to the next heading.
func rowsOf(t *testing.T, text, heading string) []guideRow {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the guide has no heading %q", heading)
	}
	var rows []guideRow
	inTable := false
	for _, line := range strings.Split(rest, "\n") {
		if strings.HasPrefix(line, "#") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		inTable = strings.HasPrefix(line, "|") && (inTable || cells[0] == "key")
		if inTable && strings.HasPrefix(cells[0], "`") {
			if len(cells) != 5 {
				t.Errorf("%s: %d cells in %s", heading, len(cells), line)
				continue
			}
			rows = append(rows, guideRow{strings.Trim(cells[0], "`"), strings.Trim(cells[4], "`")})
		}
	}
	return rows
}

// TestGuideHasEveryKey: each key that the loader knows has its row, with an
// example, and no row is of a key that there is not.
func TestGuideHasEveryKey(t *testing.T) {
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for kind := range schema {
		if strings.HasSuffix(kind, ".parts") || kind == "traffic.rate.add" { // keys of their own or of the table above
			continue
		}
		c, ok := chapters[chapterOf(kind)]
		if !ok {
			t.Errorf("the guide has no chapter on %q", kind)
			continue
		}
		rows := map[string]bool{}
		for _, r := range rowsOf(t, text, c.heading) {
			if rows[r.key] {
				t.Errorf("%s: %s has two rows", c.heading, r.key)
			}
			rows[r.key] = true
		}
		for _, key := range schema[kind] {
			if !rows[key] {
				t.Errorf("%s: no row on the key %q", c.heading, key)
			}
			delete(rows, key)
		}
		for key := range rows {
			t.Errorf("%s: the row %q is of no key", c.heading, key)
		}
	}
}

// TestExamplesOfTheGuideAreValid: the example of each key loads in one of a few
// experiments.
func TestExamplesOfTheGuideAreValid(t *testing.T) {
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	files := guideBases(t)
	try := func(path string, r guideRow) {
		key, value, ok := strings.Cut(r.example, " = ")
		if !ok || key != r.key {
			t.Errorf("%s%s: %q is no example", path, r.key, r.example)
			return
		}
		why := ""
		for _, file := range files {
			_, _, err := Load(file, path+key+"="+value)
			if err == nil {
				return
			}
			why += fmt.Sprintf("%s: %v\n", file, err)
		}
		t.Errorf("%s%s = %s is nowhere valid:\n%s", path, key, value, why)
	}
	for _, c := range chapters {
		for _, r := range rowsOf(t, string(raw), c.heading) {
			if r.example != "[["+r.key+"]]" {
				try(c.path, r)
			}
		}
	}
	for _, r := range rowsOf(t, string(raw), "### `parts`") {
		try("traffic.chat.prompt.parts.0.", r)
	}
}

// guideBases writes experiments in which each key counts somewhere, makes their
// folder the current one, and returns their names.
func guideBases(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows := "ts,in,out,arrival,prompt,output,model\n"
	for i := range 400 {
		rows += fmt.Sprintf("%[1]d,100,10,%[1]d,100,10,chat\n", i*100_000)
	}
	put("requests.csv", rows)
	put("requests.jsonl", `{"timestamp": 0, "input_length": 100, "output_length": 9, "hash_ids": [1]}
{"timestamp": 80000000, "input_length": 100, "output_length": 9, "hash_ids": [1, 2]}`)
	put("lengths.csv", "tokens,share\n10,1\n100,3\n1000,2\n")
	put("calibration.toml", "engine = \"vllm\"\nhost = { front_fixed = \"5ms\" }\nspeed = { compute = 1.02 }\n")
	const rate, lengths = `rate = "2/s"`, "prompt = 500\noutput = { dist = \"exponential\", mean = 100 }"
	replace := func(old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("base has no %q", old)
		}
		return strings.Replace(base, old, new, 1)
	}
	engine := func(keys string) string { return replace("gpu = ", "engine = { "+keys+" }\ngpu = ") }
	prompt := func(dist string) string { return replace("prompt = 500", "prompt = { "+dist+" }") }
	bases := []string{
		replace(`duration = "2h"`, `duration = "40h"`), replace("[[change]]", "[[change]]\nrate = \"3x\""), base, engine(`async = false`), engine(`kind = "sglang"`), engine(`kind = "trtllm"`), engine(`kind = "tgi"`), engine(`kind = "static"`),
		replace("[[traffic]]", "[[pool]]\nname = \"prompts\"\nrole = \"prefill\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\n[[traffic]]"),
		replace("[[pool]]", "[[pool]]\nname = \"prompts\"\nrole = \"prefill\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\n[[pool]]\nrole = \"decode\""),
		engine(`speculative = { drafts = 3, acceptance = "70%", draft_time = "0.8ms" }`),
		replace(rate, rate+"\nretry = { times = 2, backoff = \"1s\" }"),
		replace(rate, rate+"\nsession = { turns = 5 }"),
		replace(rate, rate+"\nretry = { times = 2, backoff = \"1s\" }"),
		engine(`offload = { memory = "10GB" }`),
		replace("gpu = ", "weight_dtype = \"fp8\"\ngpu = "),
		replace("model = \"llama-3.1-8b\"", "model = \"qwen3-30b-a3b\"\nreplicas = 8\nexpert_parallel = 8"),
		replace(rate, `rate = { mean = "2/s", bursts = [{ at = "10m", length = "10m", factor = 2 }] }`),
		replace(rate, `rate = { mean = "2/s", shape = "hourly", hours = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], ramps = [{ at = "1m", length = "1m", factor = 2 }], ladder = { step = "1/s", every = "1m", steps = 2 }, random_bursts = { rate = "1/h", length = "1m", factor = 2 }, regimes = [{ factor = 1, length = "1m" }, { factor = 2, length = "1m" }] }`),
		replace(rate, `rate = { shape = "windows", windows = [["0s", "2/s"]], hawkes = { branching = 0.2, decay = "1s" } }`),
		replace(rate, `rate = { mean = "2/s", arrivals = "vllm-bench", requests = 10 }`), replace(rate, `rate = { mean = "2/s" }`),
		replace("ramp = \"10m\"\nshare = \"30%\"", "canary = [\"1%\", \"10%\"]\nevery = \"1m\""),
		replace(rate, `rate = { mean = "2/s", shape = "diurnal", peak = "13:00", peak_to_trough = 2 }`),
		replace(rate, "users = 5"), replace(rate+"\n", ""), strings.Replace(replace(rate, ""), "prompt = 500\noutput", "users = 4\nprompt = 500\noutput", 1),
		replace(rate+"\n"+lengths, ""), replace(rate+"\n"+lengths, `trace = { file = "requests.csv", format = "csv" }`),
		replace(rate+"\n"+lengths, `trace = { file = "requests.jsonl", block = 50 }`),
		replace(rate, rate+"\nsystem_prompt = { tokens = 50 }"), replace(rate, rate+"\nprefix_hit = { ratio = 0.5, tokens = 100 }"),
		replace(`duration = "2h"`, "duration = \"2h\"\nprecision = \"5%\""),
		replace(`metric = "ttft"`, `metric = "tpot"`),
		replace("metric = \"ttft\"\nthreshold = \"2s\"", "metric = \"goodput\"\nall = { ttft = \"2s\" }"), replace("objective = \"99%\"", "percentile = \"P99\""),
		replace("objective = \"99%\"", "objective = \"99%\"\nalerts = [{ long = \"1h\", short = \"5m\", factor = 10 }]"),
		prompt(`dist = "lognormal", mean = 4000, p99 = 10000`), prompt(`dist = "exponential", mean = 300`), prompt(`mean = 300`), prompt(`dist = "empirical", points = [[1, 1]]`),
		prompt(`dist = "normal", mean = 300, sd = 30, tail = { from = "90%", alpha = 2 }`), prompt(`dist = "pareto", min = 300, alpha = 3`), prompt(`dist = "lognormal", mean = 4000`), prompt(`dist = "histogram"`),
		prompt(`dist = "mixture"`), prompt(`dist = "mixture", parts = [{ share = "70%", dist = "fixed", mean = 5 }, { share = "30%", dist = "fixed", mean = 9 }]`),
		replace(rate+"\n"+lengths, `trace = { file = "requests.csv", format = "csv", where = { column = "model", is = "chat" } }`),
	}
	bases = append(bases, clusterBases(replace)...)
	bases = append(bases, soldBases(replace)...)
	var files []string
	for i, text := range bases {
		name := fmt.Sprintf("base%d.toml", i)
		put(name, text)
		files = append(files, name)
	}
	t.Chdir(dir)
	return files
}

// clusterBases are experiments in which the keys of the cluster count.
func clusterBases(replace func(old, new string) string) []string {
	pool := func(keys string) string { return replace("gpu = ", keys+"\ngpu = ") }
	and := func(tables string) string { return base + tables }
	const spare = "\n[[pool]]\nname = \"spare\"\nstandby = true\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\n"
	const rule = "\n[[rule]]\nname = \"shed the free tier\"\nclasses = [\"chat\"]\nabove = 0.5\n"
	return []string{
		pool(`router = "least-load"`),
		pool("replicas = 4\nautoscale = { target = 40, max = 10 }"),
		pool(`autoscale = { metric = "rate", target = 40, max = 10 }`),
		pool(`autoscale = { metric = "schedule", max = 10, schedule = [{ at = "08:00", replicas = 8 }] }`),
		pool(`overflow = { to = "spare", at = 20 }`) + spare,
		pool(`overflow = { at = 20 }`) + spare,
		strings.Replace(base, "[[traffic]]", "[[pool]]\nname = \"other\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\noverflow = { to = \"main\", at = 20 }\n[[traffic]]", 1),
		pool("replicas = 4\nzones = 2") + "\n[[fault]]\nname = \"one down\"\n[[rollout]]\nname = \"upgrade\"\nat = \"1h\"\n",
		and(rule + "signal = \"burn\"\nslo = \"chat TTFT\"\naction = \"shed\"\n"),
		and(rule + "signal = \"queue\"\naction = \"cap\"\ncap = 100\n"),
		and(rule + "signal = \"burn\"\nslo = \"chat TTFT\"\naction = \"route\"\nto = \"spare\"\n" + spare),
		pool(`thermal = { swing = 2 }`), pool(`thermal = { hot_aisle = { replicas = 1, warmer = 5 } }`), pool(`thermal = { rack = { power = 650 } }`),
		replace(`rate = "2/s"`, "rate = \"2/s\"\nlimit = { requests = \"5/s\" }"),
	}
}

var tomlBlock = regexp.MustCompile("(?s)```toml\n(.*?)```")

// TestExperimentsOfTheGuideLoad: what is shown as a whole experiment is one.
func TestExperimentsOfTheGuideLoad(t *testing.T) {
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	guideBases(t)
	blocks := tomlBlock.FindAllStringSubmatch(string(raw), -1)
	if len(blocks) < 2 {
		t.Fatal("no experiments found")
	}
	for i, b := range blocks {
		name := fmt.Sprintf("block%d.toml", i)
		if err := os.WriteFile(name, []byte(b[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, p, err := Load(name); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		} else if len(p.Warnings) > 0 && !strings.Contains(b[1], "trace") {
			t.Errorf("%v in\n%s", p.Warnings[0], b[1])
		}
	}
}

// TestSynonymsLeadToKeys: no other name is a key itself, and each leads to one.
func TestSynonymsLeadToKeys(t *testing.T) {
	for name, key := range synonyms {
		dot := strings.LastIndex(name, ".")
		keys := schema[name[:dot]]
		if !slices.Contains(keys, key) || slices.Contains(keys, name[dot+1:]) {
			t.Errorf("%s → %s", name, key)
		}
	}
}
