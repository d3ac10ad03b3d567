package server

// settled returns followed, with a recheck of the person's streams before it holds. A
// handler that asks it may see a change of the views before Revocation is told, and its
// answer must not be faster than the cut.
func settled(followed func(org, workspace, user string) bool, recheck func(user string)) func(org, workspace, user string) bool {
	return func(org, workspace, user string) bool {
		if !followed(org, workspace, user) {
			return false
		}
		recheck(user)
		return true
	}
}
