package measured

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// twenty repeats a row with its number.
func twenty(row string) string {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(strings.ReplaceAll(row, "#", string(rune('0'+i/10))+string(rune('0'+i%10))))
	}
	return b.String()
}

// Each format gives the same run: 20 requests a second apart, TTFT 50 ms, E2E 1 s,
// 11 tokens, so TPOT 95 ms.
func TestEveryFormatOfClientsGivesTheSameRun(t *testing.T) {
	list := func(v string) string { return "[" + strings.TrimSuffix(strings.Repeat(v+",", 20), ",") + "]" }
	starts := "[" + strings.TrimSuffix(twenty("1#,"), ",") + "]"
	for name, text := range map[string]string{
		"rows.csv":      "arrival_s,prompt_tokens,output_tokens,ttft_ms,e2e_ms\n" + twenty("1#,100,11,50,1000\n"),
		"tpot.csv":      "arrival_ms,input_tokens,output_tokens,ttft_s,tpot_us\n" + twenty("1#000,100,11,0.05,95000\n"),
		"vllm.json":     `{"model_id":"m","request_rate":"inf","input_lens":` + list("100") + `,"output_lens":` + list("11") + `,"ttfts":` + list("0.05") + `,"itls":` + list("[0.95]") + `,"errors":` + list(`""`) + `,"start_times":` + starts + `}`,
		"guidellm.json": `{"benchmarks":[{"requests":{"successful":[` + strings.TrimSuffix(twenty(`{"request_start_time":1#,"request_latency":1,"time_to_first_token_ms":50,"prompt_tokens":100,"output_tokens":11},`), ",") + `]}}]}`,
		"aiperf.jsonl":  twenty(`{"metadata":{"request_start_ns":1#000000000},"metrics":{"input_sequence_length":{"value":100,"unit":"tokens"},"output_sequence_length":{"value":11,"unit":"tokens"},"time_to_first_token":{"value":50,"unit":"ms"},"request_latency":{"value":1000,"unit":"ms"}},"error":null}` + "\n"),
	} {
		runs, err := ReadFile(write(t, name, text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := runs[0]
		if len(r.Load.Requests) != 20 || math.Abs(r.Load.Requests[19].At-19) > 1e-6 || r.Load.Requests[3].Prompt != 100 {
			t.Errorf("%s: %+v", name, r.Load.Requests)
		}
		for _, f := range r.Figures {
			want := map[string]float64{TTFTMean: .05, TTFTP99: .05, TPOTMean: .095, E2EP50: 1}[f.Metric]
			if want > 0 && (f.Value < want*.999999 || f.Value > want*1.000001) {
				t.Errorf("%s: %s = %v, want %v", name, f.Metric, f.Value, want)
			}
		}
	}
}

func TestBadResultsSayWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty.json":   {"", "is empty"},
		"other.json":   {`{"a":1}`, "no known result"},
		"unit.csv":     {"arrival_s,prompt,output,ttft,e2e_ms\n", `column "ttft" has no unit`},
		"columns.csv":  {"a,b\n1,2\n", "missing columns: prompt_tokens; output_tokens; arrival_s"},
		"few.csv":      {"arrival_s,prompt,output,ttft_ms,e2e_ms\n0,1,2,3,4\n", "too few"},
		"mixed.csv":    {"arrival_s,prompt,output,ttft_us,e2e_ms\n" + twenty("1#,100,11,50000000,1000\n"), "units mixed"},
		"summary.json": {`{"mean_ttft_ms":50,"completed":5}`, "completed, total_input_tokens and total_output_tokens are needed"},
		"word.csv":     {"arrival_s,prompt,output,ttft_ms,e2e_ms\n" + twenty("1#,100,11,fast,1000\n"), `"fast" is no number`},
	} {
		if _, err := ReadFile(write(t, name, c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A folder is read by what its tables hold, not by their names; broken rows are
// errors with their place, beside the rows that can be read.
func TestFoldersAreReadByTheirColumns(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("anything.csv", "model,engine,precision,gpu,num_gpus,tp,isl,osl,concurrency,ttft_ms_avg,itl_ms_avg,output_tok_s\nx,NIM,fp8,H100,1,1,200,20,4,10,5,100\ny,NIM,fp8,H100,1,1,,20,4,10,oops,100\n")
	put("unknown.csv", "a,b\n1,2\n")
	f, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Runs) != 2 || f.Runs[0].Source != "nim" || f.Runs[1].Reject == "" || len(f.Ignored) != 1 {
		t.Errorf("%+v", f)
	}
	if len(f.Runs[0].Load.Requests) != 20 || f.Runs[0].Load.InFlight != 4 {
		t.Errorf("%d requests", len(f.Runs[0].Load.Requests))
	}
	if _, err := ReadFolder(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no measurements") {
		t.Error(err)
	}
}

// Rows of the closed-loop table whose parallel degrees multiply what is one and the
// same, and runs of recipes that the table does not mark.
func TestClosedLoopRowsAreMended(t *testing.T) {
	for _, c := range []struct {
		tp, dp, moeTP, ep          int
		wantTP, wantDP, wantExpert int
	}{
		{1, 64, 8, 8, 1, 8, 8}, // attention split by requests
		{1, 8, 1, 8, 1, 8, 8},  // the same, written right
		{1, 4, 4, 1, 1, 4, 4},  // experts split: read as dealt out
		{64, 1, 8, 8, 8, 1, 8}, // all eight GPUs on every request
		{8, 1, 8, 1, 8, 1, 1},
	} {
		u := Setup{TP: c.tp, DP: c.dp, EP: c.ep}
		inferencexParallel(&u, c.moeTP)
		if u.TP != c.wantTP || u.DP != c.wantDP || u.EP != c.wantExpert {
			t.Errorf("%+v: TP %d DP %d EP %d", c, u.TP, u.DP, u.EP)
		}
	}
	deepseek := Setup{Engine: "trtllm", Model: "deepseek-ai/DeepSeek-R1", Version: "1.2.0rc6.post3"}
	if !drafted(&deepseek, "2026-02-06") {
		t.Error("an MTP recipe is not recognised")
	}
	deepseek.Version = "1.2.0rc6.post2"
	if drafted(&deepseek, "2026-02-03") {
		t.Error("a plain recipe counts as MTP")
	}
}
