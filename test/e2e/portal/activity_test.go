package portal

// activity looks at what happened in an Organization.
func activity(alice *person) {
	from, org := alice.path(), alice.orgPath()
	alice.open(org + "/members")
	alice.press("Activity")
	alice.sees("PATCH /api/orgs/{org}")
	alice.looks("activity")
	alice.fillsBy("Part of the action", "/members")
	alice.fillsBy("Status, such as 403 or 4xx", "2xx")
	alice.press("Search")
	alice.sees("POST /api/orgs/{org}/members")
	alice.misses("intent")
	alice.fillsBy("Name of the object", "nobody's")
	alice.press("Search")
	alice.sees("Nothing of this kind happened")
	alice.open(from)
}

// usage looks at what an Organization uses. Nothing may be counted yet.
func usage(alice *person) {
	from, org := alice.path(), alice.orgPath()
	alice.open(org + "/members")
	alice.press("Usage")
	alice.sees("What this organization uses")
	alice.looks("usage")
	alice.press("Last 30 days")
	alice.sees("What this organization uses")
	alice.open(from)
}
