package planner

import "math"

// erlangB is the share of customers lost by M/M/c/c with the offered load a in erlangs.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b
}

// erlangC is the probability that a customer of M/M/c waits; 1 from saturation on.
func erlangC(c int, a float64) float64 {
	if c < 1 || a >= float64(c) {
		return 1
	}
	b := erlangB(c, a)
	rho := a / float64(c)
	return b / (1 - rho + rho*b)
}

// waitMMc is the mean wait of M/M/c in seconds: rate and mu per second.
func waitMMc(c int, rate, mu float64) float64 {
	free := float64(c)*mu - rate
	if free <= 0 || c < 1 {
		return math.Inf(1)
	}
	return erlangC(c, rate/mu) / free
}

// waitMG1 is Pollaczek and Khinchine's mean wait of M/G/1; cs2 is the squared
// coefficient of variation of the service time.
func waitMG1(rate, mu, cs2 float64) float64 {
	rho := rate / mu
	if rho >= 1 {
		return math.Inf(1)
	}
	return rho * (1 + cs2) / (2 * mu * (1 - rho))
}

// waitKingman is Kingman's mean wait of G/G/1 in heavy traffic.
func waitKingman(rate, mu, ca2, cs2 float64) float64 {
	rho := rate / mu
	if rho >= 1 {
		return math.Inf(1)
	}
	return rho / (1 - rho) * (ca2 + cs2) / 2 / mu
}

// waitAllenCunneen is their approximation of the mean wait of G/G/c: Erlang's C,
// scaled by the variation of gaps and service.
func waitAllenCunneen(c int, rate, mu, ca2, cs2 float64) float64 {
	return waitMMc(c, rate, mu) * (ca2 + cs2) / 2
}

// batchNumber is the mean number of requests in a server of batches: a birth–death
// chain with departures at n ÷ (prefill + output·(base + perSeq·n)) while n ≤ most,
// and at the rate of most beyond. +Inf when that rate is less than the arrivals'.
func batchNumber(rate float64, most int, prefill, output, base, perSeq float64) float64 {
	departures := func(n int) float64 {
		n = min(n, most)
		return float64(n) / (prefill + output*(base+perSeq*float64(n)))
	}
	if most < 1 || !(rate < departures(most)) {
		return math.Inf(1)
	}
	// Weights are scaled as they grow: only their ratios count.
	weight, total, area := 1.0, 1.0, 0.0
	for n := 1; n < 1_000_000; n++ {
		weight *= rate / departures(n)
		total += weight
		area += weight * float64(n)
		if total > 1e200 {
			weight, total, area = weight/1e200, total/1e200, area/1e200
		}
		if n > most && weight < 1e-12*total {
			break
		}
	}
	return area / total
}
