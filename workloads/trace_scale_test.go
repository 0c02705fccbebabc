package workloads

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slosim/sim/clock"
)

// burstyTrace writes a day of self-exciting arrivals on a daily curve.
func burstyTrace(t *testing.T) (Trace, []clock.Time) {
	at := draw(Rate{Mean: 2, Shape: "diurnal", Peak: 12 * clock.Hour, PeakToTrough: 3, Hawkes: Hawkes{Branching: 0.7, Decay: clock.Second}}, nil, 4, 0, clock.Time(clock.Day))
	var b strings.Builder
	b.WriteString("at,prompt,output\n")
	for i, x := range at {
		fmt.Fprintf(&b, "%d.%09d,%d,%d\n", x/1e9, x%1e9, 100+i%900, 1+i%77)
	}
	return named(put(t, "bursty.csv", []byte(b.String()))), at
}

func times(rows []Row) []clock.Time {
	out := make([]clock.Time, len(rows))
	for i, r := range rows {
		out[i] = clock.Time(r.Arrival)
	}
	return out
}

func gapCV(at []clock.Time) float64 {
	gaps := make([]float64, len(at)-1)
	for i := range gaps {
		gaps[i] = at[i+1].Sub(at[i]).Seconds()
	}
	mean, variance := meanVariance(gaps)
	return math.Sqrt(variance) / mean
}

// dispersion of counts in windows, within hours, so that the daily curve does not
// count.
func dispersion(at []clock.Time, width clock.Duration) float64 {
	n := counts(at, 0, clock.Time(24*clock.Hour), width)
	per := int(clock.Hour / width)
	sum := 0.0
	for h := range 24 {
		mean, variance := meanVariance(n[h*per : (h+1)*per])
		sum += variance / mean / 24
	}
	return sum
}

// Fewer or more requests than in the file: the rate curve, the CV of the gaps and
// the dispersion stay, which thinning at random loses.
func TestRescalingKeepsBurstiness(t *testing.T) {
	spec, at := burstyTrace(t)
	cv, disp := gapCV(at), dispersion(at, 10*clock.Second)
	for _, factor := range []float64{0.25, 0.6, 1.7, 3} {
		spec.Rate = factor
		rows, err := all(spec)
		if err != nil {
			t.Fatal(err)
		}
		got := times(rows)
		if want := factor * float64(len(at)); math.Abs(float64(len(got))-want) > 1 {
			t.Errorf("×%g: %d requests, want %.0f", factor, len(got), want)
		}
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1] {
				t.Fatal("time ran backwards")
			}
		}
		if c := gapCV(got); math.Abs(c/cv-1) > 0.05 {
			t.Errorf("×%g: gap CV %.3f, the file has %.3f", factor, c, cv)
		}
		// As many requests as in 10 s of the file.
		width := clock.Hour / clock.Duration(math.Round(360*factor))
		if d := dispersion(got, width); math.Abs(d/disp-1) > 0.12 {
			t.Errorf("×%g: dispersion %.2f, the file has %.2f", factor, d, disp)
		}
		was, is := counts(at, 0, clock.Time(24*clock.Hour), clock.Hour), counts(got, 0, clock.Time(24*clock.Hour), clock.Hour)
		for h := range was {
			// A block of rows may lie across the hour.
			if want := factor * was[h]; math.Abs(is[h]-want) > 4*math.Sqrt(want*disp)+0.02*want {
				t.Errorf("×%g, hour %d: %v requests, want %.0f", factor, h, is[h], want)
			}
		}
	}
	var thinned []clock.Time
	for i, x := range at {
		if spread(uint64(i), 9)%4 == 0 {
			thinned = append(thinned, x)
		}
	}
	if d := dispersion(thinned, 40*clock.Second); d > 0.7*disp {
		t.Errorf("thinning at random keeps a dispersion of %.2f of %.2f: this test shows nothing", d, disp)
	}
}

// Faster time divides every time stamp; a loop goes on after a mean gap with
// content of its own.
func TestSpeedAndLoop(t *testing.T) {
	spec := named(put(t, "m.jsonl", []byte(mooncakeText)))
	spec.Unit, spec.Speed = clock.Millisecond, 4
	rows, err := all(spec)
	if err != nil || rows[2].Arrival != 500*clock.Millisecond || rows[1].Arrival != 125*clock.Millisecond {
		t.Fatalf("%+v, %v", rows, err)
	}
	spec.Speed, spec.Loop = 0, true
	in, err := OpenTrace(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ids := map[uint64]bool{}
	for i := range 3000 {
		row, err := in.Next()
		if err != nil || !row.OK {
			t.Fatal(row, err)
		}
		want := clock.Duration(i/3)*3*clock.Second + []clock.Duration{0, 500 * clock.Millisecond, 2 * clock.Second}[i%3]
		if row.Arrival != want || row.Index != int64(i) || row.Prompt != int32(100*(i%3+1)) {
			t.Fatalf("row %d: %+v, want %v", i, row, want)
		}
		ids[row.IDs[0]] = true
	}
	if len(ids) != 2000 { // two in each lap
		t.Errorf("%d contents in 1,000 laps", len(ids))
	}
	empty := named(put(t, "e.csv", []byte("at,prompt,output\n")))
	empty.Loop = true
	if rows, err := all(empty); len(rows) > 0 || err != nil {
		t.Errorf("%v, %v", rows, err)
	}
}

// Ten million rows stream through in constant memory: they are written as they
// are read, and the heap is looked at on the way. With a hundredth of the rows
// held the same bound breaks, so it could.
func TestTenMillionRowsInConstantMemory(t *testing.T) {
	rows := 10_000_000
	if testing.Short() {
		rows /= 10
	}
	pipe := filepath.Join(t.TempDir(), "rows.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer f.Close()
		w := bufio.NewWriterSize(f, 1<<20)
		defer w.Flush()
		w.WriteString("at,prompt,output\n")
		line := make([]byte, 0, 64)
		for i := range rows {
			line = strconv.AppendInt(line[:0], int64(i), 10)
			line = append(strconv.AppendInt(append(line, ','), int64(1+i%4096), 10), ",7\n"...)
			w.Write(line)
		}
	}()
	spec := named(pipe)
	spec.Format, spec.Rate, spec.Unit = "csv", 0.999, clock.Millisecond
	in, err := OpenTrace(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const bound = 4 << 20
	var held []Row
	n, start, most := 0, uint64(0), uint64(0)
	for ; ; n++ {
		row, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !row.OK {
			break
		}
		switch hold := n >= rows*9/10; {
		case n == 1000:
			start = heap()
		case hold && len(held) < rows/100:
			held = append(held, row)
		case !hold && n%(rows/20) == 0:
			most = max(most, heap())
		}
	}
	if want := rows * 999 / 1000; n < want-1 || n > want {
		t.Errorf("%d rows", n)
	}
	if most > start+bound {
		t.Errorf("the heap grows from %d to %d bytes", start, most)
	}
	if h := heap(); h < start+bound && !testing.Short() {
		t.Errorf("%d rows held take %d bytes: the bound cannot fail", len(held), h-start)
	}
	runtime.KeepAlive(held)
}
