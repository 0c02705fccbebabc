package workloads

// Reuse measures how much of a trace's prompts is content that an earlier prompt
// had: what a prefix cache of unbounded memory would find.
type Reuse struct {
	seen    map[uint64]struct{}
	limit   int
	Blocks  int64 // of all prompts
	Hits    int64 // leading blocks that an earlier prompt had
	Tokens  int64 // of all prompts
	Found   int64 // tokens of the blocks that were found
	Rows    int64
	Partial bool // ids beyond the limit were not remembered: hits are a lower bound
}

// NewReuse returns a measure that remembers up to limit distinct ids.
func NewReuse(limit int) *Reuse { return &Reuse{seen: map[uint64]struct{}{}, limit: limit} }

// Add counts one row; rows without ids are not counted.
func (r *Reuse) Add(row *Row) {
	if len(row.IDs) == 0 {
		return
	}
	hits := 0
	for _, id := range row.IDs {
		if _, ok := r.seen[id]; !ok {
			break
		}
		hits++
	}
	for _, id := range row.IDs[hits:] {
		if len(r.seen) >= r.limit {
			r.Partial = true
			break
		}
		r.seen[id] = struct{}{}
	}
	r.Rows++
	r.Blocks += int64(len(row.IDs))
	r.Hits += int64(hits)
	r.Tokens += int64(row.Prompt)
	r.Found += min(int64(hits)*int64(row.Block), int64(row.Prompt))
}

// BlockHitRate is the share of blocks that an unbounded prefix cache would find;
// 0 without any.
func (r *Reuse) BlockHitRate() float64 {
	if r.Blocks == 0 {
		return 0
	}
	return float64(r.Hits) / float64(r.Blocks)
}

// Distinct is the number of distinct ids.
func (r *Reuse) Distinct() int { return len(r.seen) }
