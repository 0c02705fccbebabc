package workloads

import "io"

// sorted puts the records of a log that is written as requests end in order of
// their arrival, within a bounded window.
type sorted struct {
	in    decoder
	heap  []held // by arrival, then order of the file
	n     int64
	at    int // line of the last record
	ended bool
}

type held struct {
	record
	order int64
	line  int
}

// sortWindow is how many records of a log are held back: as many requests as can
// be in flight at once.
const sortWindow = 1 << 16

func (s *sorted) line() int { return s.at }

func (s *sorted) decode(r *record) error {
	for !s.ended && len(s.heap) < sortWindow {
		err := s.in.decode(r)
		if s.at = s.in.line(); err == io.EOF {
			s.ended = true
			break
		}
		if err != nil {
			return err
		}
		h := held{record: *r, order: s.n, line: s.at}
		h.ids = append([]uint64(nil), r.ids...)
		s.n++
		s.push(h)
	}
	if len(s.heap) == 0 {
		return io.EOF
	}
	h := s.pop()
	*r, s.at = h.record, h.line
	return nil
}

func (s *sorted) before(i, j int) bool {
	a, b := &s.heap[i], &s.heap[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.order < b.order
}

func (s *sorted) push(h held) {
	s.heap = append(s.heap, h)
	for i := len(s.heap) - 1; i > 0 && s.before(i, (i-1)/2); i = (i - 1) / 2 {
		s.heap[i], s.heap[(i-1)/2] = s.heap[(i-1)/2], s.heap[i]
	}
}

func (s *sorted) pop() held {
	top, last := s.heap[0], len(s.heap)-1
	s.heap[0] = s.heap[last]
	s.heap[last] = held{}
	s.heap = s.heap[:last]
	for i := 0; ; {
		least := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < last; kid++ {
			if s.before(kid, least) {
				least = kid
			}
		}
		if least == i {
			return top
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}
