// Package design chooses the points of an experiment over several factors: the full
// grid, a Latin hypercube, or a Sobol' sequence. A point is a place in the unit cube;
// a Factor turns each coordinate into a setting.
//
// All three are pure functions of their arguments. Sources: M. D. McKay, R. J. Beckman
// and W. J. Conover, Technometrics 21 (1979) 239, for Latin hypercubes; I. M. Sobol',
// USSR Comput. Math. Math. Phys. 7 (1967) 86, I. A. Antonov and V. M. Saleev, ibid. 19
// (1980) 252, and S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30 (2008) 2635, for the
// sequence and its direction numbers; R. Cranley and T. N. L. Patterson, SIAM J. Numer.
// Anal. 13 (1976) 904, with P. L'Ecuyer and C. Lemieux (2002), for the shift, here in
// base 2, which keeps the sequence's balance.
package design
