package config

import "strings"

// Nearest returns the name that the person probably meant: the least edited one,
// an only one that begins with the word, or one with these initials
// ("tp" → "tensor_parallel"); "" if none is near.
func Nearest(word string, names []string) string {
	w := fold(word)
	if w == "" {
		return ""
	}
	best, bestDist := "", len([]rune(w))/3
	for _, name := range names {
		if d := distance(w, fold(name)); d <= bestDist && (best == "" || d < bestDist) {
			best, bestDist = name, d
		}
	}
	if best != "" {
		return best
	}
	for _, name := range names {
		if n := fold(name); strings.HasPrefix(n, w) || len(w) > 1 && initials(n) == w {
			if best != "" {
				return ""
			}
			best = name
		}
	}
	return best
}

// fold removes differences that are no typing errors.
func fold(s string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(s)))
}

func initials(s string) string {
	var b strings.Builder
	for _, part := range strings.Split(s, "_") {
		if part != "" {
			b.WriteByte(part[0])
		}
	}
	return b.String()
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	ar, br := []rune(a), []rune(b)
	before, prev := make([]int, len(br)+1), make([]int, len(br)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ar); i++ {
		row := make([]int, len(br)+1)
		row[0] = i
		for j := 1; j <= len(br); j++ {
			cost := 1
			if ar[i-1] == br[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && ar[i-1] == br[j-2] && ar[i-2] == br[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(br)]
}
