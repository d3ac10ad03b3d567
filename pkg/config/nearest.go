package config

import (
	"maps"
	"slices"
)

func keysOf(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// nearest returns the name with the smallest edit distance to the given one, and that distance.
func nearest(given string, names []string) (name string, distance int) {
	distance = -1
	for _, n := range names {
		if d := editDistance(given, n); distance < 0 || d < distance {
			name, distance = n, d
		}
	}
	return name, distance
}

// editDistance is the number of letters to insert, remove or replace to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
