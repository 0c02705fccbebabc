package experiments

import (
	"fmt"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
)

// site reads where a pool's GPUs stand: the air over the day, a hot aisle, a limit
// of the power of a rack.
func site(t *config.Table, s *sim.ThermalSpec) {
	s.SwingC = config.Read(t, "swing", config.Float, config.Default(0.0, "the air is as warm all day"), config.Note[float64]("degrees above and below ambient over the day"), config.Example[float64]("4"), config.Between(0.0, 30))
	if s.SwingC > 0 {
		s.HottestAt = config.Read(t, "hottest", config.TimeOfDay, config.Default(15*clock.Hour, "assumption: when the air is warmest"), config.Example[clock.Duration](`"15:00"`))
	} else {
		forbid(t, "", "hottest counts only beside swing", "hottest")
		t.Know("hottest")
	}
	if t.Has("hot_aisle") {
		sub := t.Sub("hot_aisle", `hot_aisle = { replicas = 2, warmer = 10 }`)
		s.HotFrom = config.Read(sub, "replicas", config.Int, config.Required, config.Note[int]("from the first on"), config.Example[int]("2"), config.Between(1, maxReplicas))
		s.HotC = config.Read(sub, "warmer", config.Float, config.Required, config.Note[float64]("degrees above the other inlets"), config.Example[float64]("10"), config.Between(0.0, 60))
	} else {
		t.Know("hot_aisle")
	}
	if t.Has("rack") {
		sub := t.Sub("rack", `rack = { power = 10000, replicas = 2 }`)
		s.RackW = config.Read(sub, "power", config.Float, config.Required, config.Note[float64]("watts of its GPUs together"), config.Example[float64]("10000"), config.Above(0, 1e9))
		s.RackReplicas = config.Read(sub, "replicas", config.Int, config.Default(1, "a rack each"), config.Example[int]("2"), config.Between(1, maxReplicas))
	} else {
		t.Know("rack")
	}
}

// checkSite reports a rack that cannot even idle on its power, and a limit that
// never binds.
func (l *loader) checkSite(t *config.Table, p *sim.Pool) {
	s := &p.Thermal
	if !s.Enabled || !t.IsTable("thermal") {
		return
	}
	sub := t.Sub("thermal", "")
	if s.HotFrom > p.Limit() {
		sub.Errorf("hot_aisle", fmt.Sprintf("1 to %d replicas", p.Limit()), "", "pool %q has only %s", p.Name, count(p.Limit(), "replica"))
	}
	if s.RackW == 0 {
		return
	}
	gpus := float64(s.RackReplicas * p.Deployment.GPUs())
	power := p.Deployment.GPU.Common.Power
	idle := gpus * power.IdleW * p.Deployment.GPU.TDPW / power.ReferenceTDPW
	switch most := gpus * p.Deployment.GPU.TDPW; {
	case s.RackW <= idle:
		sub.Errorf("rack", fmt.Sprintf("more than %.0f", idle), "", "power = %g W: the %.0f GPUs of a rack draw %.0f W when idle", s.RackW, gpus, idle)
	case s.RackW >= most:
		sub.Warnf("rack", "", "power = %g W never binds: the %.0f GPUs of a rack draw at most %.0f W", s.RackW, gpus, most)
	}
}
