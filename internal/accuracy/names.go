package accuracy

import (
	"fmt"
	"slices"
	"strings"

	"slosim/models"
)

// Names of models and GPUs as measurements write them, turned into the
// catalogue's. An unknown name is an error that says so; nothing is guessed by
// likeness.

// suffixes of checkpoints that do not change a model's shape.
var suffixes = []string{"-hf", "-instruct", "-chat", "-it", "-fp8", "-nvfp4", "-fp4", "-awq", "-gptq", "-bf16", "-base", "-2507", "-thinking", "-v0.1", "-v0.2", "-v0.3", "-0528", "-dynamic"}

// aliases are models of equal shape under another name.
var aliases = map[string]string{
	"deepseek-v3.1": "deepseek-v3", "deepseek-v3-0324": "deepseek-v3", "qwen3-coder-30b-a3b": "qwen3-30b-a3b",
	"llama2-7b": "llama-2-7b", "llama2-13b": "llama-2-13b", "llama2-70b": "llama-2-70b",
}

// modelOf finds the catalogue's model behind a checkpoint's name.
func modelOf(name string) (string, error) {
	plain := strings.ToLower(strings.TrimSpace(name))
	plain = plain[strings.LastIndex(plain, "/")+1:]
	plain = strings.TrimPrefix(plain, "meta-")
	var all []string
	for _, m := range models.LLMs() {
		all = append(all, m.Name)
	}
	for {
		for _, try := range []string{plain, aliases[plain]} {
			if try != "" && slices.Contains(all, try) {
				return try, nil
			}
		}
		cut := plain
		for _, s := range suffixes {
			cut = strings.TrimSuffix(cut, s)
		}
		if cut == plain {
			return "", fmt.Errorf("model %q is not in the catalogue", name)
		}
		plain = cut
	}
}

// boards are names that leave out which board of a GPU it is; the measurements
// that use them were made on these.
var boards = map[string]string{
	"h100": "h100-sxm", "h100-80gb": "h100-sxm", "h100-80gb-hbm3": "h100-sxm", "h200": "h200-sxm", "h200-141gb": "h200-sxm", "b200": "b200-sxm",
	"a100": "a100-sxm-80gb", "a100-80gb": "a100-sxm-80gb", "a100-40gb": "a100-sxm-40gb",
}

// gpuOf finds the catalogue's GPU.
func gpuOf(name string) (string, error) {
	plain := strings.ToLower(strings.TrimSpace(name))
	plain = strings.NewReplacer("_", "-", " ", "-").Replace(strings.TrimPrefix(plain, "nvidia "))
	if b, ok := boards[plain]; ok {
		plain = b
	}
	if plain == "" {
		return "", fmt.Errorf("the source names no GPU")
	}
	g, err := models.FindGPU(plain)
	if err != nil {
		return "", fmt.Errorf("GPU %q is not in the catalogue", name)
	}
	return g.Name, nil
}
