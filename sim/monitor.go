package sim

import (
	"slices"

	"slosim/engine"
	"slosim/models"
	"slosim/sim/clock"
)

// monitor looks at every replica: once a second to sample load for the record, and more
// often for the heat, which sets the clocks. Both are timers and no processes: they come
// too often for what waking one costs.
type monitor struct {
	c        *cluster
	pools    []poolMonitor
	progress func() // called once per simulated minute
}

// poolMonitor is the record of one pool.
type poolMonitor struct {
	heat    models.Heat
	local   models.Heat // heat in the place of the replica last asked for
	thermal bool
	states  []models.HeatState // per replica
	inletC  float64            // outside of the hot aisle, now
	capW    []float64          // power limit of a GPU of each replica, now; nil without rack limits
	alike   bool               // all replicas stand in the same air, under no rack's limit
	hotFrom int                // replicas in the hot aisle
	hotC    float64
	spent   []engine.Spent // at the last look
	warmth  []warmth       // per replica
	factor  []int          // of each replica: which slowness a fault has set
	windows []poolWindow
	total   poolWindow // of the counted span
	peakKV  float64
}

// warmth is what the ticks of the heat have seen of a replica.
type warmth struct {
	compute, memory int64      // work at the last tick
	until           clock.Time // up to where
	power           float64    // sums over the ticks since the last look
	bins            int        // of the clock
	ticks           int
}

// poolWindow holds sums over samples (one per replica and second).
type poolWindow struct {
	samples              int64
	running, waiting, kv float64
	clock, power, temp   float64
	kvMax, tempMax       float64
	clockMin             float64
	busy                 clock.Duration
	span                 clock.Duration // that busy is a part of: up to the last step boundaries
	work                 models.Cost
	steps                int64
	preemptions, lost    int64
	prompted, hit        int64   // prompt tokens of admitted requests; of them found in the prefix cache
	looks, ups, bound    int     // of the second: how many replicas served, how many were paid for
	loaded               int64   // of hit: loaded from host memory
	standing             float64 // power of replicas that start and of the warm pool, per GPU
}

func newMonitor(c *cluster) *monitor {
	m := &monitor{c: c}
	for k := range c.pools {
		spec := &c.plan.exp.Pools[k]
		pm := poolMonitor{thermal: spec.Thermal.Enabled, windows: make([]poolWindow, c.plan.windows), spent: make([]engine.Spent, spec.Limit()), factor: make([]int, spec.Limit()), warmth: make([]warmth, spec.Limit())}
		if pm.thermal {
			pm.heat = models.NewHeat(spec.Deployment, spec.Thermal.AmbientC)
			pm.local = pm.heat
			pm.rest(spec, c.plan.exp.Start-c.plan.exp.Warmup)
		}
		for i := range pm.spent {
			pm.spent[i].Until = clock.Time(-c.plan.exp.Warmup)
			pm.warmth[i].until = pm.spent[i].Until
		}
		m.pools = append(m.pools, pm)
	}
	return m
}

// watch samples all pools.
func (m *monitor) watch(now clock.Time) {
	m.c.covered.Store(int64(now))
	if m.progress != nil && now%clock.Time(clock.Minute) == 0 {
		m.progress()
	}
	for k := range m.pools {
		m.look(now, k)
	}
}

// look samples one pool. The sample at t stands for the second before it.
func (m *monitor) look(now clock.Time, k int) {
	pm := &m.pools[k]
	p := &m.c.pools[k]
	var w *poolWindow
	if now > 0 && now <= clock.Time(m.c.plan.exp.Duration) {
		w = &pm.windows[int((now-1)/clock.Time(m.c.plan.width))]
	}
	if w != nil {
		w.looks++
		w.ups += len(p.ups)
		w.bound += p.held()
		if pm.thermal {
			w.standing += pm.heat.IdleW * float64(len(p.warm))
		}
	}
	for i := range p.views {
		if s := p.stage[i]; s != serving && s != draining {
			if pm.thermal && w != nil && s == starting {
				w.standing += pm.states[i].PowerW
			}
			continue
		}
		replica := m.c.replicas[p.first+int32(i)]
		var load engine.Load
		if w != nil {
			load = replica.Load(now)
		}
		spent, last, x := replica.Spent(now), &pm.spent[i], &pm.warmth[i]
		if w != nil {
			w.add(&load)
			w.busy += spent.Busy - last.Busy
			w.span += spent.Until.Sub(last.Until)
			w.steps += spent.Steps - last.Steps
			w.prompted += spent.Prompted - last.Prompted
			w.hit += spent.Hit - last.Hit
			w.loaded += spent.Loaded - last.Loaded
			w.work.AddSince(&spent.Cost, &last.Cost)
			if pm.thermal {
				w.heat(&pm.states[i], x)
			}
			pm.peakKV = max(pm.peakKV, float64(load.Peak)/float64(load.Total))
		}
		*last = *spent
		x.power, x.bins, x.ticks = 0, 0, 0
	}
}

// heat carries the GPUs' heat on and sets their clocks.
func (m *monitor) heat(now clock.Time) {
	for k := range m.pools {
		if m.pools[k].thermal {
			m.tickPool(now, k)
		}
	}
}

// tickPool carries one pool's heat on.
func (m *monitor) tickPool(now clock.Time, k int) {
	pm := &m.pools[k]
	p := &m.c.pools[k]
	pm.site(now, m.c.plan.exp.Start, &m.c.plan.exp.Pools[k])
	replicas, states, warmth := m.c.replicas[p.first:][:len(p.stage)], pm.states[:len(p.stage)], pm.warmth[:len(p.stage)]
	for i, stage := range p.stage {
		s := &states[i]
		if stage != serving && stage != draining { // it cools down
			pm.at(i).Tick(s, 0, 0, heatInterval)
			continue
		}
		spent, x := replicas[i].Spent(now), &warmth[i]
		bin := s.Bin
		// Work is known up to the last step boundary: so is the time it took.
		if d := spent.Until.Sub(x.until); d > 0 {
			compute, memory := spent.Compute-x.compute, spent.Memory-x.memory
			x.compute, x.memory, x.until = spent.Compute, spent.Memory, spent.Until
			pm.at(i).Tick(s, compute, memory, d)
		}
		x.power += s.PowerW
		x.bins += s.Bin
		x.ticks++
		if s.Bin != bin {
			replicas[i].SetClock(now, m.bin(k, i))
			m.c.rouse(p.first + int32(i))
		}
	}
}

func (w *poolWindow) add(l *engine.Load) {
	w.samples++
	w.running += float64(l.Running)
	w.waiting += float64(l.Waiting)
	use := float64(l.Blocks) / float64(l.Total)
	w.kv += use
	if use > w.kvMax {
		w.kvMax = use
	}
}

// heat adds a second's mean power and clock, and where the temperature is.
func (w *poolWindow) heat(s *models.HeatState, x *warmth) {
	mhz, watts := float64(s.Bin*models.ClockStepMHz), s.PowerW
	if x.ticks > 0 {
		mhz, watts = float64(x.bins*models.ClockStepMHz)/float64(x.ticks), x.power/float64(x.ticks)
	}
	w.clock += mhz
	w.power += watts
	w.temp += s.TempC
	if s.TempC > w.tempMax {
		w.tempMax = s.TempC
	}
	if w.clockMin == 0 || mhz < w.clockMin {
		w.clockMin = mhz
	}
}

// merge adds another window's sums.
func (w *poolWindow) merge(o *poolWindow) {
	w.samples += o.samples
	w.running += o.running
	w.waiting += o.waiting
	w.kv += o.kv
	w.clock += o.clock
	w.power += o.power
	w.temp += o.temp
	w.kvMax = max(w.kvMax, o.kvMax)
	w.tempMax = max(w.tempMax, o.tempMax)
	if o.clockMin > 0 && (w.clockMin == 0 || o.clockMin < w.clockMin) {
		w.clockMin = o.clockMin
	}
	w.busy += o.busy
	w.span += o.span
	w.steps += o.steps
	w.work.Add(&o.work, 1)
	w.preemptions += o.preemptions
	w.lost += o.lost
	w.prompted += o.prompted
	w.hit += o.hit
	w.loaded += o.loaded
	w.looks += o.looks
	w.ups += o.ups
	w.bound += o.bound
	w.standing += o.standing
}

// bin is what SetClock gets: the clock and the slowness of a replica.
func (m *monitor) bin(pool, i int) int {
	pm := &m.pools[pool]
	b := 0
	if pm.thermal {
		b = pm.states[i].Bin
	}
	return b | pm.factor[i]<<slowShift
}

// renewed notes that a replica has a fresh engine.
func (m *monitor) renewed(now clock.Time, pool, i int) {
	m.pools[pool].spent[i] = engine.Spent{Until: now}
	m.pools[pool].warmth[i] = warmth{until: now}
}

// missed notes that nobody has looked at a replica up to now, because it did not serve:
// the next look stands for the time from now on.
func (m *monitor) missed(now clock.Time, pool, i int) {
	spent := m.c.replicas[m.c.pools[pool].first+int32(i)].Spent(now)
	m.pools[pool].spent[i] = *spent
	m.pools[pool].warmth[i] = warmth{compute: spent.Compute, memory: spent.Memory, until: spent.Until}
}

// preempted notes a preemption on a replica.
func (m *monitor) preempted(replica int32, e *engine.Event) {
	if e.At < 0 || e.At >= clock.Time(m.c.plan.exp.Duration) {
		return
	}
	w := &m.pools[m.c.places[replica].pool.index].windows[int(e.At/clock.Time(m.c.plan.width))]
	w.preemptions++
	w.lost += int64(e.Lost)
}

// sum adds up the windows of every pool.
func (m *monitor) sum() {
	for k := range m.pools {
		pm := &m.pools[k]
		pm.total = poolWindow{}
		for i := range pm.windows {
			pm.total.merge(&pm.windows[i])
		}
	}
}

// anyThermal tells whether any pool's GPUs warm up.
func (m *monitor) anyThermal() bool {
	return slices.ContainsFunc(m.pools, func(p poolMonitor) bool { return p.thermal })
}
