// Package slo decides whether a service kept its promises: objectives, good and
// bad events, error budgets with their projection, burn rates and alerts.
//
// It sees counts per minute, not requests, so a ledger fed from production
// metrics works as well as one fed by the simulator.
package slo
