// Package experiments holds the experiments that ship with the simulator and
// the one way from text to a resolved sim.Experiment: Load.
//
// It models what an experiment file may say: its keys, units, defaults and
// ranges, and what must hold between its parts. Defaults of the serving engine
// are those of vLLM's API server (engine/arg_utils.py get_batch_defaults,
// config/scheduler.py and config/cache.py, main of 2026-08-17; older releases
// through named switches), of SGLang (server_args.py, model_runner.py),
// TensorRT-LLM (llmapi/llm_args.py) and TGI (launcher/src/main.rs); figures of
// models and GPUs come from the catalogues of package models. What has no citable
// source is listed in Experiment.Assumptions, what is likely not meant in
// Provenance.Warnings. docs/guide.md is the reference of every key.
//
// It leaves out everything that needs a run: a prompt longer than max_model_len
// is no input error but a rejected request.
package experiments
