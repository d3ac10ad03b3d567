package framework

import (
	"hash/fnv"
	"os"
	"testing"
	"time"
)

// Sample skips a slow case on all but one of n days. Each case has its own days, so every
// run is short and every case runs regularly. KEDGE_TEST_ALL=1 runs all cases.
func Sample(t testing.TB, n uint32) {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	today := uint32(time.Now().Unix() / int64(24*time.Hour/time.Second))
	if os.Getenv("KEDGE_TEST_ALL") == "" && (h.Sum32()+today)%n != 0 {
		t.Skip("its turn is another day; KEDGE_TEST_ALL=1 runs all")
	}
}
