package slo

// Tracker plays a budget policy minute by minute, on what is known of the budget so
// far.
type Tracker struct {
	marks [3]float64 // shares
	level int        // marks in force: 0 none, 1 warned, 2 frozen, 3 stopped
}

// NewTracker returns the policy of an objective, with nothing in force.
func NewTracker(o *Objective) *Tracker {
	p := o.PolicyOf()
	return &Tracker{marks: [3]float64{p.Warn / 100, p.Freeze / 100, p.Stop / 100}}
}

// Step takes the share of the budget that is spent and calls do for each thing that
// the policy then does, in order.
func (t *Tracker) Step(used float64, do func(kind string)) {
	used += 1e-12
	if t.level >= 2 && used < t.marks[1] {
		t.level = 1
		do(Lifted)
	}
	if t.level == 1 && used < t.marks[0] {
		t.level = 0
	}
	for t.level < len(t.marks) && used >= t.marks[t.level] {
		do([...]string{Warned, Frozen, Stopped}[t.level])
		t.level++
	}
}

// Reset starts a new calendar window and tells whether anything was in force.
func (t *Tracker) Reset() bool {
	on := t.level > 0
	t.level = 0
	return on
}

// Frozen tells whether non-essential changes wait.
func (t *Tracker) Frozen() bool { return t.level >= 2 }

// Stopped tells whether all changes wait.
func (t *Tracker) Stopped() bool { return t.level >= 3 }
