package recent

import (
	"sync"

	"k8s.io/utils/lru"
)

// Cache has the values of the keys that were used last.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex
	values *lru.Cache
}

// New returns an empty Cache of at most size values.
func New[K comparable, V any](size int) *Cache[K, V] { return &Cache[K, V]{values: lru.New(size)} }

// Get returns the value of a key, and whether there is one.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	held, ok := c.values.Get(key)
	value, _ = held.(V)
	return value, ok
}

// Put sets the value of a key.
func (c *Cache[K, V]) Put(key K, value V) { c.Change(key, func(V) V { return value }) }

// Change replaces the value of a key by what change returns for it, and returns that. change gets the
// zero value if there is none.
func (c *Cache[K, V]) Change(key K, change func(V) V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, _ := c.Get(key)
	value = change(value)
	c.values.Add(key, value)
	return value
}
