package workloads

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/sim/clock"
)

const serveGen = "../../shared/data/traces/servegen/"

// ServeGen's client windows, replayed, give each window the sum of its clients'
// rates, and counts that vary more than Poisson ones, as its bursty clients do.
func TestServeGenWindowsAreReplayed(t *testing.T) {
	file := serveGen + "m-large_client_windows.csv"
	if _, err := os.Stat(file); err != nil {
		t.Skip("needs the public traces in ../shared/data, which are not part of the repository")
	}
	total, clients, err := ReadWindows(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(clients) < 20 || len(total) < 2000 || total[1].At != 10*clock.Minute {
		t.Fatalf("%d clients, %d windows", len(clients), len(total))
	}
	const hours = 3
	end := clock.Time(hours * clock.Hour)
	r := Rate{Mean: 1, Shape: "windows", Windows: total, Clients: clients}
	at := draw(r, nil, 3, 0, end)
	for k, n := range counts(at, 0, end, 10*clock.Minute) {
		// Four standard errors at a dispersion of 60: one client of the file has gaps
		// with a CV of 8.
		if want := 600 * total[k].Factor; math.Abs(n-want) > 4*math.Sqrt(60*want) {
			t.Errorf("window %d: %v requests, want %.0f", k, n, want)
		}
	}
	mean, variance := meanVariance(counts(at, 0, end, clock.Second)[:300])
	if variance/mean < 1.3 {
		t.Errorf("dispersion %.2f: the clients' bursts are lost", variance/mean)
	}
}

// ServeGen's histograms have its published quantiles, to a bin's width.
func TestServeGenHistogramsAreRead(t *testing.T) {
	file := serveGen + "m-large_input_tokens_pdf.csv"
	if _, err := os.Stat(file); err != nil {
		t.Skip("needs the public traces in ../shared/data, which are not part of the repository")
	}
	points, err := ReadHistogram(file)
	if err != nil {
		t.Fatal(err)
	}
	l := lengths(t, Dist{Kind: "empirical", Points: points})
	for p, want := range map[float64]float64{.5: 592, .9: 2368, .95: 2400, .99: 5504} {
		if got := l.Quantile(p); math.Abs(got/want-1) > 0.04 {
			t.Errorf("P%g: %.0f tokens, published %.0f", 100*p, got, want)
		}
	}
}

// Of whole numbers a bin [3, 4) holds just the length 3.
func TestHistogramBinsHoldWholeLengths(t *testing.T) {
	points, err := ReadHistogram(put(t, "h.csv", []byte("tokens,count\n3,50\n4,25\n5,0\n10,25\n")))
	if err != nil {
		t.Fatal(err)
	}
	l := lengths(t, Dist{Kind: "empirical", Points: points})
	for n, want := range map[int32]float64{3: 1, 4: .5, 5: .25, 10: .25} {
		if got := l.ShareAtLeast(n); math.Abs(got-want) > 1e-9 {
			t.Errorf("P(X ≥ %d) = %g, want %g", n, got, want)
		}
	}
}

func TestBrokenTablesSayWhere(t *testing.T) {
	for text, says := range map[string]string{
		"":                                      ":1: the file is empty",
		"t_s,rate_rps\n":                        ":2: the file has no windows",
		"t_s,rate\n0,1\n":                       `:1: no column "rate_rps"; the file has t_s, rate`,
		"t_s,rate_rps\n0,-1\n":                  `:2: "-1" is no rate`,
		"t_s,rate_rps\n0,1\n0,2\n":              "two windows at t_s = 0",
		"t_s,rate_rps\n0\n":                     ":2: 1 columns, at least 2 expected",
		"t_s,rate_rps\nx,1\n":                   `:2: "x" is no arrival time`,
		"client,t_s,rate_rps,gap_cv\na,0,1,0\n": ":2: a CV of 0 is out of range",
	} {
		_, _, err := ReadWindows(put(t, "w.csv", []byte(text)))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
	for text, says := range map[string]string{
		"":                       "at least two bins",
		"tokens,share\n1,1\n":    "at least two bins",
		"tokens,share\n1\n":      ":2: 1 column, two are expected",
		"tokens,share\n5,1\n5,1": ":3: the bin at 5 is not above",
		"tokens,share\n5,-1\n":   `:2: "-1" is no share`,
		"tokens,share\n1,0\n2,0": "a share above 0",
	} {
		_, err := ReadHistogram(put(t, "h.csv", []byte(text)))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

// Whatever bytes a table has, reading it ends with something usable or with an
// error that has a place.
func FuzzTables(f *testing.F) {
	f.Add([]byte("client,t_s,rate_rps,dist,p1,gap_cv\na,0,1,Gamma,0.5,1\nb,600,2,Weibull,0.7,1\n"))
	f.Add([]byte("tokens,share\n1,0.5\n2,0.5\n"))
	file := filepath.Join(f.TempDir(), "x.csv")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		var broken *TraceError
		total, clients, err := ReadWindows(file)
		switch {
		case err != nil && !errors.As(err, &broken):
			t.Fatalf("an error without a place: %v", err)
		case err == nil && total[0].At != 0:
			t.Fatalf("%+v", total)
		}
		for _, c := range clients {
			if len(c.Windows) != len(c.Gaps) || len(c.Windows) == 0 {
				t.Fatalf("%+v", c)
			}
		}
		points, err := ReadHistogram(file)
		if err != nil {
			if !errors.As(err, &broken) {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		if _, err := (Dist{Kind: "empirical", Points: points}).Compile(); err != nil {
			t.Fatalf("%v from %q", err, text)
		}
	})
}
