// Package models holds what hardware and language models cost: the catalogue of
// LLMs and GPUs (embedded TOML, each figure with its source), the memory of a
// replica, the time of one engine step, and power and heat.
//
// The step time is a sum over the operations of a layer, times the layers, plus
// the LM head, the collectives and the host (docs/model.md holds every equation
// with its source and limits). It leaves out what happens between steps:
// queueing, batching and block allocation are the engine's. Attention is grouped,
// latent or windowed, MLPs are dense or mixtures of experts, and a replica spreads
// over GPUs by tensor, pipeline and expert parallelism, within nodes and between.
//
// A Deployment leads to all of it: Memory for the KV pool, NewStepper for the
// step time, NewHeat for the clock, Figures for where the numbers come from, Notes
// for what of it nobody measured.
package models
