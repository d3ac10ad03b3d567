package portal

// activity looks at what happened in an Organization.
func activity(alice *person) {
	from, org := alice.path(), alice.orgPath()
	alice.open(org + "/members")
	alice.press("Activity")
	alice.sees("PATCH /api/orgs/{org}")
	alice.sees("Change the organization")
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

// pastAccess looks at who has access to an Organization, and who had before there was a record.
func pastAccess(alice *person) {
	from, org := alice.path(), alice.orgPath()
	alice.open(org + "/members")
	alice.press("Access")
	alice.sees("Who has access to this organization and to what is in it")
	alice.sees("every workspace as admin")
	alice.looks("access")
	alice.open(org + "/access?at=2001-02-03T04:05:06Z")
	alice.sees("nothing earlier is known")
	alice.press("Now")
	alice.sees("Who has access to this organization")
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
