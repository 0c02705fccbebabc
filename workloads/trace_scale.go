package workloads

import (
	"math"

	"slosim/sim/clock"
	"slosim/sim/rng"
)

// lap counts the times that a looping trace has been read.
type lap struct {
	n      uint64
	offset clock.Duration // of this lap
	rows   int64          // of this lap
	last   clock.Duration // of this lap, since its start
}

// looped returns the file's rows, from the start again at its end if the trace
// loops. A lap takes the file's span and one mean gap. The content of a further
// lap is new: its ids are none of those before.
func (t *TraceReader) looped() (Row, error) {
	row, err := t.fromFile()
	if err == nil && !row.OK && t.spec.Loop && t.lap.rows > 0 {
		l := &t.lap
		period := max(l.last, clock.Second)
		if l.rows > 1 {
			period = l.last + l.last/clock.Duration(l.rows-1)
		}
		*l = lap{n: l.n + 1, offset: l.offset + max(period, 1)}
		t.file.Close()
		if err := t.open(); err != nil {
			return Row{}, err
		}
		t.index, t.last, t.skipped = 0, 0, 0
		row, err = t.fromFile()
	}
	if !row.OK || err != nil {
		return Row{}, err
	}
	t.lap.rows++
	t.lap.last = row.Arrival
	row.Arrival += t.lap.offset
	row.otherContent(t.lap.n)
	return row, nil
}

// otherContent gives the row's prompt content of its own for copy k; copy 0 is
// the file's.
func (r *Row) otherContent(k uint64) {
	if k == 0 {
		return
	}
	for i := range r.IDs {
		r.IDs[i] = spread(r.IDs[i], k<<1|1)
	}
}

// rescaler sends factor requests for each of a trace's. Rows are taken in blocks:
// of each block it sends a contiguous run of the right length, round the block,
// with the gaps between them stretched or shortened alike so that they fill the
// block's span. Hence the rate curve stays, block by block, and so do the CV and
// the order of the gaps, which independent thinning would lose.
type rescaler struct {
	factor float64
	block  []Row
	ahead  Row // first row of the next block
	begun  bool
	number int64
	owed   float64 // requests not yet sent for rows before the block

	from  clock.Duration // start of the block
	scale float64        // of gaps
	start int            // position of the run in the block
	send  int            // rows to send
	k     int            // sent so far
	spent float64        // gaps so far, unscaled
}

// A run of rescaleRows is so long that its ends do not count, and a block hence
// that many over the factor, at most longestBlock.
const (
	rescaleRows  = 512
	longestBlock = 1 << 16
)

func (s *rescaler) next(read func() (Row, error)) (Row, error) {
	for s.k >= s.send {
		ok, err := s.fill(read)
		if !ok || err != nil {
			return Row{}, err
		}
	}
	n := len(s.block) - 1 // the last entry only ends the last gap
	i := (s.start + s.k) % n
	row := s.block[i]
	if copied := uint64((s.start + s.k) / n); copied > 0 && s.factor > 1 {
		row.IDs = append([]uint64(nil), row.IDs...)
		row.otherContent(copied << 32)
	}
	row.Arrival = s.from + clock.Duration(math.Round(s.spent*s.scale))
	s.spent += float64(s.block[i+1].Arrival - s.block[i].Arrival)
	s.k++
	return row, nil
}

// fill reads the next block and plans what to send of it; false at the end.
func (s *rescaler) fill(read func() (Row, error)) (bool, error) {
	var err error
	if !s.begun {
		s.begun = true
		if s.ahead, err = read(); err != nil {
			return false, err
		}
	}
	if !s.ahead.OK {
		return false, nil
	}
	s.block = append(s.block[:0], s.ahead)
	length := int(min(rescaleRows/min(s.factor, 1), longestBlock))
	for {
		if s.ahead, err = read(); err != nil {
			return false, err
		}
		if !s.ahead.OK || len(s.block) == length {
			break
		}
		s.block = append(s.block, s.ahead)
	}
	n := len(s.block)
	first, end := s.block[0].Arrival, s.ahead.Arrival
	if !s.ahead.OK { // a mean gap after the last
		end = s.block[n-1].Arrival
		if n > 1 {
			end += (end - first) / clock.Duration(n-1)
		}
	}
	s.block = append(s.block, Row{Arrival: end})
	s.owed += s.factor * float64(n)
	s.send = int(s.owed)
	s.owed -= float64(s.send)
	s.from, s.k, s.spent = first, 0, 0
	s.start = int(rng.New(0, rng.Gap, "rescale").Uint64(s.number) % uint64(n))
	s.number++
	span := 0.0
	for j := range s.send {
		i := (s.start + j) % n
		span += float64(s.block[i+1].Arrival - s.block[i].Arrival)
	}
	if s.scale = 0; span > 0 {
		s.scale = float64(end-first) / span
	}
	return true, nil
}
