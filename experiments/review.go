package experiments

import (
	"slosim/internal/config"
	"slosim/sim/clock"
)

// review reads by what sim review judges a launch.
func (l *loader) review(root *config.Table) {
	if !root.Has("review") {
		root.Know("review")
		return
	}
	t := root.Sub("review", `review = { gate = "warn", material = 0.1 }`)
	r := &l.e.Review
	r.Gate = config.Read(t, "gate", config.OneOf("block", "warn", "none"), config.Default("block", "which call makes the exit status 1"))
	r.Material = config.Read(t, "material", config.Float, config.Default(0.1, "assumption: a tenth of the budget's pace"), config.Note[float64]("growth of the burn rate from which on a worsening counts"), config.Example[float64]("0.2"), config.Above(0, 1e6))
	r.Chance = config.Read(t, "chance", config.Share, config.Default(0.02, "over all objectives together"), config.Note[float64]("a change without effect is called worse so often"), config.Example[float64](`"1%"`), config.Where(func(v float64) bool { return v > 0 && v < .5 }, "is no such level", "more than 0, less than 50 %", ""))
	r.TimeLimit = config.Read(t, "time_limit", config.Span, config.Default(clock.Duration(0), "none"), config.Note[clock.Duration]("for causes and levers; the call itself always runs in full"), config.Example[clock.Duration](`"60s"`), config.Between(0, clock.Day))
	r.Levers = config.Read(t, "levers", config.Bool, config.Default(true, "look for causes and levers"))
}
