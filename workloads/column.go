package workloads

import "slosim/sim/rng"

// Ahead is how many requests are drawn at once where nothing can change them before they
// are sent. They are drawn column by column, all times, all prompts, all outputs: code and
// tables are then in the processor's caches for all but the first, and it looks up the
// next ones while it waits for one.
const Ahead = 16

// NextAll fills in time and index of the next requests, and returns how many there are:
// fewer than Ahead only at the end.
func (a *Arrivals) NextAll(r *[Ahead]Request) int {
	if a.other != nil || a.limit > 0 {
		for k := range r {
			at, i, ok := a.Next()
			if !ok {
				return k
			}
			r[k].Send, r[k].Index = at, i
		}
		return Ahead
	}
	var draws [Ahead]uint64
	a.gaps.Fill(a.index, draws[:])
	for k, x := range draws[:] {
		if u := rng.Uniform(x >> drawUp); a.gamma.shape == 1 {
			a.spent += rng.Exp(u)
		} else {
			a.spent += a.gamma.quantile(u)
		}
		at, ok := a.curve.Invert(a.spent * a.scale)
		if !ok {
			return k
		}
		r[k].Send, r[k].Index = at, a.index
		a.index++
	}
	return Ahead
}

// Blank returns what all requests of the class have in common that join no cohort.
func (s *Shaper) Blank() Request {
	return Request{Priority: s.prefix.priority}
}

// ShapeAll is Shape for requests that follow each other. They must be Blank where Shape
// did not fill them in, but for Send and Index.
func (s *Shaper) ShapeAll(r []Request) {
	if len(r) == 0 || len(r) > Ahead || len(s.cohorts) > 0 || s.rho != 0 {
		for k := range r {
			s.Shape(r[k].Index, r[k].Send, &r[k])
		}
		return
	}
	var prompts, outputs [Ahead]int32
	s.base.prompt.drawAll(&s.prompts, r[0].Index, &prompts)
	s.base.output.drawAll(&s.outputs, r[0].Index, &outputs)
	for k := range r {
		r[k].Prompt, r[k].Output = prompts[k], outputs[k]
	}
	if s.prefix.system.Tokens > 0 || s.prefix.ratio > 0 {
		for k := range r {
			s.prefix.draw(r[k].Index, &r[k])
		}
	}
}
