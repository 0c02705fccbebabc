package sim

import (
	"math"

	"slosim/models"
	"slosim/sim/clock"
)

// Where the GPUs stand: inlet air over the day, a hot aisle, and the power that a
// rack may draw. Each is a tick of the heat old when it acts.

// inletAt returns the inlet temperature at a time of the week, outside of any hot
// aisle: a cosine over the day.
func (t *ThermalSpec) inletAt(week clock.Duration) float64 {
	if t.SwingC == 0 {
		return t.AmbientC
	}
	return t.AmbientC + t.SwingC*math.Cos(2*math.Pi*float64(week-t.HottestAt)/float64(clock.Day))
}

// rest puts all GPUs at the temperature of long idling in their air.
func (pm *poolMonitor) rest(spec *Pool, week clock.Duration) {
	t := &spec.Thermal
	pm.inletC, pm.hotFrom, pm.hotC = t.inletAt(week), t.HotFrom, t.HotC
	n := spec.Limit()
	pm.alike = t.HotFrom == 0 && t.RackW <= 0
	pm.local.AmbientC = pm.inletC
	if t.RackW > 0 {
		pm.capW = make([]float64, n)
		for i := range pm.capW {
			pm.capW[i] = pm.heat.CapW
		}
	}
	for i := range n {
		pm.states = append(pm.states, pm.at(i).Start())
	}
}

// at returns the heat model of a replica in its place.
func (pm *poolMonitor) at(i int) *models.Heat {
	h := &pm.local
	if pm.alike {
		return h
	}
	h.AmbientC = pm.inletC
	if i < pm.hotFrom {
		h.AmbientC += pm.hotC
	}
	if pm.capW != nil {
		h.CapW = pm.capW[i]
	}
	return h
}

// site sets the air and the power limits of the next tick. The GPUs of a rack share
// its limit: each may draw what it drew in the last tick and an equal part of what
// the rack has left, which is negative when it has drawn too much.
func (pm *poolMonitor) site(now clock.Time, start clock.Duration, spec *Pool) {
	t := &spec.Thermal
	pm.inletC = t.inletAt(start + clock.Duration(now))
	pm.local.AmbientC = pm.inletC
	if pm.capW == nil {
		return
	}
	gpus := spec.gpusPerReplica()
	for from := 0; from < len(pm.states); from += t.RackReplicas {
		rack := pm.states[from:min(from+t.RackReplicas, len(pm.states))]
		drawn := 0.0
		for i := range rack {
			drawn += rack[i].PowerW * gpus
		}
		room := (t.RackW - drawn) / (gpus * float64(len(rack)))
		for i := range rack {
			pm.capW[from+i] = max(pm.heat.IdleW, min(pm.heat.CapW, rack[i].PowerW+room))
		}
	}
}
