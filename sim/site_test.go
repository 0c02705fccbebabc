package sim

import (
	"math"
	"testing"

	"slosim/models"
	"slosim/sim/clock"
)

// The inlet follows its cosine, the hot aisle stands above it, and idle GPUs take on
// the difference degree by degree.
func TestInletFollowsTheDayAndTheAisle(t *testing.T) {
	spec := ThermalSpec{AmbientC: 25, SwingC: 4, HottestAt: 15 * clock.Hour}
	for hour, want := range map[clock.Duration]float64{15: 29, 3: 21, 9: 25, 24 + 15: 29} {
		if got := spec.inletAt(hour * clock.Hour); math.Abs(got-want) > 1e-9 {
			t.Errorf("inlet at %d h: %.3f °C, want %.0f", hour, got, want)
		}
	}
	e := crowd(t, 0.01, 10*clock.Minute)
	e.Pools[0].Replicas = 3
	e.Pools[0].Thermal = ThermalSpec{Enabled: true, AmbientC: 25, HotFrom: 1, HotC: 12}
	c, _ := play(t, e, nil)
	s := c.mon.pools[0].states
	if d := s[0].TempC - s[2].TempC; math.Abs(d-12) > 0.5 {
		t.Errorf("the hot aisle is %.2f °C warmer, want 12", d)
	}
}

// The GPUs of a rack together stay within its power, whatever each of them does; one
// that works alone may draw what the other leaves.
func TestRackSharesItsPower(t *testing.T) {
	e := referenceDay(t, 2, 20*clock.Minute)
	e.Traffic[0].Rate.Mean = 30 // more than they can do
	e.Pools[0].Thermal.RackReplicas = 2
	power := func(rackW float64, change func(e *Experiment)) (drawn, most float64) {
		x := e
		x.Pools = append([]Pool{}, e.Pools...)
		x.Pools[0].Thermal.RackW = rackW
		change(&x)
		c, r := play(t, x, nil)
		for i, w := range r.pools[0].windows {
			if i > 2 { // settled
				most = max(most, w.power/float64(w.looks)*8)
			}
		}
		for _, s := range c.mon.pools[0].states {
			drawn += s.PowerW * 8
		}
		return drawn, most
	}
	_, free := power(0, func(*Experiment) {})
	if free < 9000 {
		t.Fatalf("without a limit they draw %.0f W: the test needs more load", free)
	}
	_, most := power(8000, func(*Experiment) {})
	if most > 8000*1.01 || most < 8000*0.9 {
		t.Errorf("under a limit of 8000 W the rack draws %.0f W", most)
	}
	gpu := e.Pools[0].Deployment.GPU
	_, alone := power(8000, func(x *Experiment) { x.Faults = []Fault{{Pool: "main", Replicas: 1}} })
	idle := models.NewHeat(e.Pools[0].Deployment, 30).IdleW
	if alone < 4000 || alone > 8*gpu.TDPW+8*idle {
		t.Errorf("alone a replica draws %.0f W, more than half of the rack's limit is there for it", alone)
	}
}
