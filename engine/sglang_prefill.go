package engine

// adder is what is left for one prefill batch (SGLang's PrefillAdder), in tokens.
type adder struct {
	chunk int64   // prompt tokens (rem_chunk_tokens)
	total float64 // KV, what running requests are expected to take deducted (rem_total_tokens)
	now   int64   // KV that is free (cur_rem_tokens)
	page  int64
	count int32 // requests added
}

// charge deducts a request of n prompt tokens that may make further ones.
func (a *adder) charge(n, further int64) {
	n = (n + a.page - 1) / a.page * a.page
	a.chunk -= n
	a.total -= float64(n + further + a.page)
	a.now -= n + a.page
	a.count++
}

// expected returns the output tokens that the estimate counts for n still to come.
func expected(n int32) int64 { return int64(min(n, sglangClip)) }

// prefillBatch schedules a prefill batch, if one can be formed.
func (s *SGLang) prefillBatch() bool {
	if s.chunked == none && (s.full || s.waiting.n == 0) {
		return false
	}
	mixed, growth := int32(0), int32(0)
	if s.mixed {
		mixed, growth = int32(len(s.running)), s.decodeNeed()
		if growth > s.freeBlks {
			return false // decoding has to retract first
		}
	}
	a := adder{chunk: int64(s.chunk - mixed), now: int64(s.freeBlks-growth) << s.shift, page: int64(s.cfg.BlockSize)}
	sum := int64(0)
	for _, i := range s.running {
		sum += expected(s.jobs[i].asked - s.jobs[i].made)
	}
	a.total = float64(a.now) - float64(sum)*s.ratio

	s.joiners = s.joiners[:0]
	if s.chunked != none && !s.continueChunked(&a) {
		return false
	}
	s.addWaiting(&a)
	if a.count == 0 {
		return false
	}
	if mixed > 0 {
		s.decode()
	}
	s.running = append(s.running, s.joiners...)
	return true
}

// continueChunked schedules the next chunk of the request prefilled in part. It
// reports false when mixed decode rows leave it no room; alone it always has
// room, because its admission counted the whole prompt.
func (s *SGLang) continueChunked(a *adder) bool {
	j := &s.jobs[s.chunked]
	left := int64(j.target - j.computed)
	n := min(left, a.chunk, a.now+int64(j.blocks)<<s.shift-int64(j.computed))
	if room := int64(a.total); room > 0 {
		n = min(n, room)
	}
	if n <= 0 {
		return false
	}
	further := int64(0)
	if n == left {
		further = expected(j.asked)
	}
	a.charge(n, further)
	if s.start(s.chunked, int32(n)) {
		s.chunked = none
	}
	return true
}

// addWaiting adds requests from the head of the queue while prompt tokens, KV
// estimate and max_running_requests last. The last may be cut to a chunk.
func (s *SGLang) addWaiting(a *adder) {
	for s.waiting.n > 0 {
		if s.live >= s.cfg.MaxSeqs {
			s.full = true
			return
		}
		i := s.waiting.at(0)
		j := &s.jobs[i]
		n, further := int64(j.target), expected(j.asked)
		if float64(n+expected(j.asked-j.made)+a.page) >= a.total && !s.mustTake(a, j) {
			s.full = true
			return
		}
		if int64(s.blocksFor(j.target))<<s.shift > a.chunk {
			if n, further = a.chunk/a.page*a.page, 0; n <= 0 || s.chunked != none {
				return
			}
		}
		s.admit()
		a.charge(n, further)
		if !s.start(i, int32(n)) {
			s.chunked = i
		}
		if a.total <= 0 || a.now <= 0 {
			s.full = true
			return
		}
	}
}

// mustTake tells whether a request goes in although the estimate says no: when
// nothing else runs and its blocks are free. SGLang lowers max_new_tokens at
// arrival until this holds; without it a request as long as the pool would wait
// for ever.
func (s *SGLang) mustTake(a *adder, j *job) bool {
	return len(s.running) == 0 && a.count == 0 && s.blocksFor(j.target) <= s.freeBlks
}

// start prefills n tokens of a request and reports whether they were its last; if
// it has more than one token to make, it then joins the decode batch.
func (s *SGLang) start(i, n int32) bool {
	if !s.prefill(i, n) {
		return false
	}
	if j := &s.jobs[i]; j.made < j.output {
		s.joiners = append(s.joiners, i)
	}
	return true
}
