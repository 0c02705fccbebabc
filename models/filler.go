package models

// Filler is a StepModel that writes costs where they are kept and returns their
// Total: the same figures, without copies on the way. A Growth is what a Slope has.
type Filler interface {
	StepTo(c *Cost, b *Batch, clockBin int) (total int64)
	GrowthTo(g *Growth, decodeSeqs int32, clockBin int) (total int64)
}

// FillerOf returns m itself if it is a Filler, else one that asks m.
func FillerOf(m StepModel) Filler {
	if f, ok := m.(Filler); ok {
		return f
	}
	return copier{m}
}

type copier struct{ m StepModel }

func (f copier) StepTo(c *Cost, b *Batch, clockBin int) int64 {
	*c = f.m.Step(*b, clockBin)
	return c.Total()
}

func (f copier) GrowthTo(g *Growth, decodeSeqs int32, clockBin int) int64 {
	c := f.m.Slope(decodeSeqs, clockBin)
	*g = Growth{c.Attn, c.Compute, c.Memory}
	return c.Total()
}

// Step implements StepModel.
func (s *Stepper) Step(b Batch, clockBin int) (c Cost) {
	s.StepTo(&c, &b, clockBin)
	return c
}

// Slope implements StepModel. Attention is the only part that grows.
func (s *Stepper) Slope(decodeSeqs int32, clockBin int) Cost {
	var g Growth
	s.GrowthTo(&g, decodeSeqs, clockBin)
	return Cost{Attn: g.Attn, Compute: g.Compute, Memory: g.Memory}
}
